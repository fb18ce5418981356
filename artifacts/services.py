"""Store and expire artifacts; delete unused bytes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from artifacts.models import Artifact
from artifacts.storage.blobs import blob_path, delete_file, list_old_files, write_blob
from artifacts.storage.staging import open_upload_names
from decisions.audit.record import AuditEvent, record_all
from decisions.foundation.infra.batches import BATCH_SIZE, run_in_batches
from decisions.foundation.infra.ids import new_id
from decisions.foundation.validation.storable import storable_text
from decisions.identity.authority import Owned


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """Bytes that are durably stored and have no row yet (see `artifact_rows`).

    Attributes:
        artifact_id: the id of the future row, so that a step's output can already refer to it.
    """

    artifact_id: str
    sha256: str
    size_bytes: int
    name: str
    mime_type: str
    kind: str


def store_blob(data: bytes, *, name: str, mime_type: str, kind: str = "file") -> StoredBlob:
    """Store bytes durably, before their row is written. Blocks; call it outside a transaction."""
    return StoredBlob(
        new_id("art_"),
        write_blob(data),
        len(data),
        storable_text(name)[:255],
        storable_text(mime_type)[:128],
        kind[:32],
    )


def artifact_rows(
    blobs: Sequence[tuple[StoredBlob, int | None]],
    *,
    owner: Owned,
    run_id: str,
    ended_at: datetime | None = None,
) -> list[Artifact]:
    """Return the unsaved rows of stored blobs.

    Args:
        blobs: each with the index of its step, or None.
        owner: the run, or the call, that stored them: they belong to its caller.
        ended_at: when the run ended, if it ends in the same transaction; starts the time to live.
    """
    now = datetime.now(UTC)
    return [
        Artifact(
            id=blob.artifact_id,
            tenant_id=owner.tenant_id,
            workspace_id=owner.workspace_id,
            trust=owner.trust,
            principal_id=owner.principal_id,
            user_id=owner.user_id,
            run_id=run_id,
            step_index=step_index,
            kind=blob.kind,
            name=blob.name,
            mime_type=blob.mime_type,
            sha256=blob.sha256,
            size_bytes=blob.size_bytes,
            created_at=now,
            expires_at=expiry_of(ended_at) if ended_at else None,
        )
        for blob, step_index in blobs
    ]


def expiry_of(ended_at: datetime) -> datetime:
    """Return when the artifacts of a run that ended then expire."""
    return ended_at + timedelta(milliseconds=settings.ARTIFACT_TTL_MS)


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
