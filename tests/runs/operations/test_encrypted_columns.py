# ruff: noqa: S608  (attacks are plain SQL)
"""Encrypted columns: a value that was copied to another column or row by SQL is not read there, and
values of older versions and keys are read and encrypted anew.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection, models
from django.test import override_settings

from decisions.authorization.sealed_arguments import CannotBeShown, open_arguments
from decisions.chat.exact_request import earlier_texts, pending_request
from decisions.foundation.security.sealed_columns import unseal_column
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runners.browser_sessions import StateUnreadable, new_session, read_state, save_state
from runners.errors import RunnerFailed
from runners.models import BrowserSession, ExecutionTarget
from runners.targets.runner_endpoint import runner_of
from runners.targets.targets import Caller, TargetFields, create_target_row
from runs.management.commands.reencrypt import ENCRYPTED
from runs.models import Webhook, WebhookDelivery
from runs.sessions.services import clone_session
from runs.submission.secret_inputs import read_secrets
from runs.submission.submit import submit_run
from runs.webhooks.deliveries import claim_due_deliveries, secret_and_message
from runs.webhooks.services import create_webhook
from tests.support.decisions.continuity import RISKY, SendChat, create_decision
from tests.support.runs.webhooks import make_due, submit_canceled

NOT_ENCRYPTED = {"Event.signature", "KeyedCall.answer"}  # of masked texts; the answer of a call
READ_BY_PREVIOUS_VERSION = {
    "runners_browsersession.sealed_state",
    "runners_executiontarget.sealed_auth_token",
    "runs_runsecret.sealed",
    "runs_webhook.secret",
}
Place = tuple[type[models.Model], str]
PLACES = {f"{model._meta.db_table}.{column}": (model, column) for model, column in ENCRYPTED}


@dataclass(frozen=True)
class Stored:
    """Two rows of each table with encrypted columns."""

    principal: Principal

    def row(self, place: Place, index: int) -> Any:
        rows = list(place[0]._default_manager.exclude(**{place[1]: None}).order_by("pk"))
        assert len(rows) == 2
        return rows[index]

    def read(self, place: Place) -> str:
        """Return what the product reads from the first row of a column; empty if it refuses."""
        try:
            return self._readers()[f"{place[0].__name__}.{place[1]}"](self.row(place, 0))
        except (CannotBeShown, RunnerFailed, StateUnreadable, ValueError):
            return ""

    def _readers(self) -> dict[str, Callable[[Any], str]]:
        return {
            "Decision.sealed_arguments": lambda row: str(open_arguments(row)),
            "Conversation.sealed_request": lambda row: str(pending_request(row) or ""),
            "Conversation.sealed_context": lambda row: (
                "" if "***" in (text := earlier_texts(row).last_message) else text
            ),
            "ExecutionTarget.sealed_auth_token": lambda row: (
                runner_of(row, Caller.of(self.principal)).auth_token or ""
            ),
            "BrowserSession.sealed_state": lambda row: str(read_state(row)),
            "RunSecret.sealed": lambda row: str(read_secrets(row.run).values),
            "Webhook.secret": _secret_of_delivery,
        }


def _secret_of_delivery(webhook: Webhook) -> str:
    WebhookDelivery.objects.update(status="pending", attempts=0)
    make_due()
    claimed = claim_due_deliveries(limit=9)
    mine = [row for row in claimed if row.webhook_id == webhook.id]
    return secret_and_message(mine[0])[0] if mine else ""


@pytest.fixture
def stored(
    principal: Principal, submit: Callable[..., str], send_chat: SendChat, settings: Any
) -> Stored:
    for number in "12":
        create_decision(principal, user_id=number)
        send_chat(f"{RISKY} token={number}secret", slots={}, session_id=number)
        fields = TargetFields(
            tenant_id=principal.tenant_id,
            workspace_id=principal.workspace_id,
            name=f"runner {number}",
            kind="docker-runner",
            endpoint="https://runner.example/execute",
            auth_token=f"token-of-runner-{number}",
        )
        create_target_row(fields, actor="t")
        session = new_session(principal, number)
        session.worker_id = "w"
        session.save(force_insert=True)
        save_state(session.id, worker_id="w", storage={"cookies": []}, urls=[number])
        create_webhook(principal=principal, url="https://hook.example/")
        submit_login(principal, number)
    submit_canceled(submit, principal)
    return Stored(principal)


def submit_login(principal: Principal, number: str) -> None:
    inputs = {
        "startUrl": "https://example.com/login",
        "credentials": {"username": "alice", "password": f"hunter-{number}"},
        "fields": {"mode": "selector", "usernameSelector": "#u", "passwordSelector": "#p"},
    }
    options = {"mode": "async"}
    submit_run(
        principal=principal, template_id="login_keep_session", inputs=inputs, options=options
    )


def write(place: Place, index: int, value: bytes, stored: Stored) -> None:
    model, column = place
    key = model._meta.pk.column
    statement = f"UPDATE {model._meta.db_table} SET {column} = %s WHERE {key} = %s"
    with connection.cursor() as cursor:
        cursor.execute(statement, [value, stored.row(place, index).pk])
        assert cursor.rowcount == 1


def values(stored: Stored) -> Iterator[tuple[str, int, bytes]]:
    for name, place in PLACES.items():
        for index in (0, 1):
            yield name, index, bytes(getattr(stored.row(place, index), place[1]))


def as_older_version(plain: bytes, key: str) -> bytes:
    """Encrypt as versions did that had one key for all columns."""
    derived = hmac.digest(key.encode(), b"seal", hashlib.sha256)
    return Fernet(base64.urlsafe_b64encode(derived)).encrypt(plain)


def downgrade(stored: Stored) -> None:
    """Replace every value by one of an older version."""
    for name, index, _ in list(values(stored)):
        place = PLACES[name]
        plain = unseal_column(stored.row(place, index), place[1])
        write(place, index, as_older_version(plain, settings.CONTINUITY_SECRET_KEYS[0]), stored)


def reencrypt() -> str:
    out = StringIO()
    call_command("reencrypt", stdout=out)
    return out.getvalue()


def test_a_value_copied_to_another_column_or_row_is_not_read_there(stored: Stored) -> None:
    found = list(values(stored))
    for name, place in PLACES.items():
        own = stored.read(place)
        assert own, f"{name} is read where it was written"
        for source, index, value in found:
            if (source, index) != (name, 0):
                write(place, 0, value, stored)
                assert not stored.read(place), f"{source} of row {index} is read as {name}"
        write(place, 0, next(value for at, _, value in found if at == name), stored)
        assert stored.read(place) == own


def test_values_of_an_older_version_are_read_and_then_encrypted_anew(stored: Stored) -> None:
    before = {name: stored.read(place) for name, place in PLACES.items()}
    downgrade(stored)
    assert all(value.startswith(b"gAAAA") for _, _, value in values(stored))
    assert {name: stored.read(place) for name, place in PLACES.items()} == before
    assert reencrypt().count(": 2 values encrypted anew.") == len(PLACES)
    assert all(value.startswith(b"v2:") for _, _, value in values(stored))
    assert {name: stored.read(place) for name, place in PLACES.items()} == before
    rows = AuditEntry.objects.filter(action="secrets.reencrypted")
    assert sorted(rows.values_list("resource_id", flat=True)) == sorted(PLACES)
    assert reencrypt().count(": 0 values encrypted anew.") == len(PLACES)
    assert rows.count() == len(PLACES)


def test_the_previous_version_reads_what_is_written_during_a_rolling_upgrade(
    stored: Stored, settings: Any
) -> None:
    before = {name: stored.read(place) for name, place in PLACES.items()}
    settings.ROLLING_UPGRADE = True
    assert reencrypt().count(": 2 values encrypted anew.") == len(READ_BY_PREVIOUS_VERSION)
    assert reencrypt().count(": 0 values encrypted anew.") == len(PLACES)
    found = {name for name, _, value in values(stored) if value.startswith(b"gAAAA")}
    assert found == READ_BY_PREVIOUS_VERSION
    assert {name: stored.read(place) for name, place in PLACES.items()} == before
    for index in (0, 1):
        session = stored.row((BrowserSession, "sealed_state"), index)
        save_state(session.id, worker_id="w", storage={"cookies": []}, urls=["new"])
        sealed = bytes(BrowserSession.objects.get(id=session.id).sealed_state or b"")
        assert sealed.startswith(b"gAAAA")
    settings.ROLLING_UPGRADE = False
    assert reencrypt().count(": 2 values encrypted anew.") == len(READ_BY_PREVIOUS_VERSION)
    assert all(value.startswith(b"v2:") for _, _, value in values(stored))


def test_values_under_an_older_key_are_encrypted_under_the_newest(stored: Stored) -> None:
    before = {name: stored.read(place) for name, place in PLACES.items()}
    new = "n" * 40
    with override_settings(CONTINUITY_SECRET_KEYS=[new, *settings.CONTINUITY_SECRET_KEYS]):
        reencrypt()
    with override_settings(CONTINUITY_SECRET_KEYS=[new]):
        assert {name: stored.read(place) for name, place in PLACES.items()} == before


def test_a_value_that_cannot_be_decrypted_is_named_and_left(stored: Stored) -> None:
    downgrade(stored)
    place = (ExecutionTarget, "sealed_auth_token")
    write(place, 0, b"v2:of another installation", stored)
    broken = stored.row(place, 0)
    with pytest.raises(
        CommandError, match=f"runners_executiontarget.sealed_auth_token of {broken.pk}"
    ):
        reencrypt()
    left = [name for name, _, value in values(stored) if value.startswith(b"gAAAA")]
    assert (left, bytes(stored.row(place, 0).sealed_auth_token)) == (
        [],
        b"v2:of another installation",
    )


def test_every_binary_column_is_encrypted_anew_or_known_not_to_be_encrypted() -> None:
    known = {f"{model.__name__}.{column}" for model, column in ENCRYPTED} | NOT_ENCRYPTED
    found = {
        f"{model.__name__}.{field.name}"
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, models.BinaryField)
    }
    assert found == known


def test_the_clone_of_a_session_has_a_state_of_its_own(stored: Stored) -> None:
    source = stored.row((BrowserSession, "sealed_state"), 0)
    clone = clone_session(principal=stored.principal, session_id=source.id)
    row = BrowserSession.objects.get(id=clone["sessionId"])
    assert bytes(row.sealed_state or b"") != bytes(source.sealed_state)
    assert read_state(row) == read_state(source)
