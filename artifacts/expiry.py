"""Delete artifacts: expired ones become rows without bytes, and bytes that no artifact uses go."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime

from django.db import transaction
from django.db.models import QuerySet

from artifacts.models import Artifact
from artifacts.storage.blobs import blob_path, delete_file, list_old_files
from artifacts.storage.staging import open_upload_names
from decisions.audit.record import AuditEvent, record_all
from decisions.foundation.infra.batches import BATCH_SIZE, run_in_batches


def expire_artifacts() -> int:
    """Turn overdue artifacts into tombstones, audited; return how many. Commits each batch. Safe to
    call concurrently.
    """
    due = Artifact.objects.filter(expires_at__lte=datetime.now(UTC), expired_at__isnull=True)
    return run_in_batches(lambda: _expire(due.order_by("expires_at")[:BATCH_SIZE]))


def expire_artifacts_of(run_ids: Sequence[str]) -> None:
    """Turn all artifacts of these runs into tombstones now, audited. Commits."""
    _expire(Artifact.objects.filter(run_id__in=run_ids, expired_at__isnull=True))


def _expire(rows: QuerySet[Artifact]) -> int:
    now = datetime.now(UTC)
    with transaction.atomic():
        expired = [
            row
            for row in rows
            if Artifact.objects.filter(id=row.id, expired_at__isnull=True).update(expired_at=now)
        ]
        record_all(
            [
                AuditEvent(
                    "artifact.expired",
                    "scheduler",
                    "artifact",
                    row.id,
                    row.tenant_id,
                    row.workspace_id,
                    {"runId": row.run_id, "sizeBytes": row.size_bytes},
                )
                for row in expired
            ]
        )
    return len(expired)


def collect_blobs() -> int:
    """Garbage-collect old files that no artifact or open upload uses; return how many."""
    deleted = 0
    old = iter(list_old_files())
    while paths := list(itertools.islice(old, 500)):
        rows = Artifact.objects.filter(
            sha256__in=[path.rsplit("/", 1)[-1] for path in paths], expired_at__isnull=True
        )
        used = {blob_path(sha256) for sha256 in rows.values_list("sha256", flat=True)}
        used |= open_upload_names()
        # A suffix after a dot marks a copy of an upload that is being completed.
        deleted += sum(delete_file(path) for path in paths if path.partition(".")[0] not in used)
    return deleted
