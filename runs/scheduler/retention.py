"""Retention of runs: hide them from the API after RUN_TTL_MS, delete them after
RUN_RETENTION_DAYS.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction

from artifacts.expiry import expire_artifacts_of
from decisions.foundation.infra.batches import BATCH_SIZE, run_in_batches
from runs.models import TERMINAL, Run, RunKey, WebhookDelivery, Worker


def hide_runs() -> int:
    """Hide ended runs older than RUN_TTL_MS from the API and its totals; return how many.

    The admin shows them for RUN_RETENTION_DAYS.
    """
    now = datetime.now(UTC)
    oldest = now - timedelta(milliseconds=settings.RUN_TTL_MS)
    due = Run.objects.filter(ended_at__lte=oldest, hidden_at__isnull=True)

    def hide_some() -> int:
        ids = list(due.order_by("ended_at").values_list("id", flat=True)[:BATCH_SIZE])
        return due.filter(id__in=ids).update(hidden_at=now)

    return run_in_batches(hide_some)


def delete_old_runs() -> int:
    """Delete ended runs older than RUN_RETENTION_DAYS with their steps, events and keys; return how
    many.

    Their audit rows and the tombstones of their artifacts stay. Rows of lost workers and webhook
    deliveries without a run that are as old go too.
    """
    oldest = datetime.now(UTC) - timedelta(days=settings.RUN_RETENTION_DAYS)
    old = Run.objects.filter(ended_at__lte=oldest, hidden_at__isnull=False, status__in=TERMINAL)

    def delete_some() -> int:
        ids = list(old.order_by("ended_at").values_list("id", flat=True)[:BATCH_SIZE])
        with transaction.atomic():
            expire_artifacts_of(ids)
            RunKey.objects.filter(run_id__in=ids).delete()
            Run.objects.filter(id__in=ids).delete()
        return len(ids)

    hide_runs()
    Worker.objects.filter(lost_at__lte=oldest).delete()
    WebhookDelivery.objects.filter(run__isnull=True, created_at__lte=oldest).delete()
    return run_in_batches(delete_some)
