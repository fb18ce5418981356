"""`manage.py reencrypt`: encrypt the stored secrets anew, after an upgrade or a change of keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.db.models import Model

from decisions.audit.record import AuditEvent, command_actor, record
from decisions.foundation.security.sealed_columns import reencrypt
from decisions.models import Conversation, Decision
from runners.models import BrowserSession, ExecutionTarget
from runs.models import RunSecret, Webhook
from runs.operations.home.prepare import prepare_home

ENCRYPTED: tuple[tuple[type[Model], str], ...] = (
    (Decision, "sealed_arguments"),
    (Conversation, "sealed_request"),
    (Conversation, "sealed_context"),
    (ExecutionTarget, "sealed_auth_token"),
    (BrowserSession, "sealed_state"),
    (RunSecret, "sealed"),
    (Webhook, "secret"),
)
_BATCH_SIZE = 200


class Command(BaseCommand):
    """Replaces values of another version or older key; everything may run meanwhile."""

    help = "Encrypt stored secrets with the newest key, each for its own table, column and row."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Reencrypt every column, print the numbers, and exit with 1 if a value is unreadable."""
        prepare_home()
        if settings.ROLLING_UPGRADE:
            self.stdout.write(
                "CONTINUITY_ROLLING_UPGRADE is set: values that the previous version reads are"
                " encrypted for it."
            )
        unreadable: list[str] = []
        for model, column in ENCRYPTED:
            name, count = f"{model._meta.db_table}.{column}", 0
            for batch in _batches(model, column):
                count += _reencrypt_batch(name, batch, column, unreadable)
            self.stdout.write(f"{name}: {count} values encrypted anew.")
        if unreadable:
            raise CommandError(
                f"{len(unreadable)} values cannot be decrypted with the configured keys, or were"
                f" copied from elsewhere, and were left: {', '.join(unreadable[:20])}."
            )


def _batches(model: type[Model], column: str) -> Iterator[list[Model]]:
    rows = model._default_manager.exclude(**{column: None}).order_by("pk")
    batch = list(rows[:_BATCH_SIZE])
    while batch:
        yield batch
        batch = list(rows.filter(pk__gt=batch[-1].pk)[:_BATCH_SIZE])


@transaction.atomic
def _reencrypt_batch(name: str, batch: list[Model], column: str, unreadable: list[str]) -> int:
    """Reencrypt a column of some rows and audit it; return how many were written."""
    count = 0
    for row in batch:
        try:
            count += reencrypt(row, column)
        except ValueError:
            unreadable.append(f"{name} of {row.pk}")
    if count:
        actor, details = command_actor(), {"values": count}
        record(AuditEvent("secrets.reencrypted", actor, "column", name, "", "", details))
    return count
