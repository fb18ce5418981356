"""Keeping artifacts and letting them go."""

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
from decisions.infra.ids import new_id
from decisions.validation.storable import storable_text


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """Bytes that are safe in the storage and wait for their row (`artifact_rows`).

    Attributes:
        artifact_id: the id that the row will have, so that an output can name it already.
    """

    artifact_id: str
    sha256: str
    size_bytes: int
    name: str
    mime_type: str
    kind: str


def store_blob(data: bytes, *, name: str, mime_type: str, kind: str = "file") -> StoredBlob:
    """Write the bytes durably, ahead of the row. Blocks on the storage; not for a transaction."""
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
    tenant_id: str,
    workspace_id: str,
    run_id: str,
    ended_at: datetime | None = None,
) -> list[Artifact]:
    """Return the unsaved rows of kept blobs, each with the step it came from.

    Where the run ends in the same transaction (`ended_at`), their time to live counts already.
    """
    now = datetime.now(UTC)
    return [
        Artifact(
            id=blob.artifact_id,
            tenant_id=tenant_id,
            workspace_id=workspace_id,
            run_id=run_id,
            step_index=step_index,
            kind=blob.kind,
            name=blob.name,
            mime_type=blob.mime_type,
            sha256=blob.sha256,
            size_bytes=blob.size_bytes,
            created_at=now,
            expires_at=_expiry(ended_at) if ended_at else None,
        )
        for blob, step_index in blobs
    ]


def _expiry(ended_at: datetime) -> datetime:
    return ended_at + timedelta(milliseconds=settings.ARTIFACT_TTL_MS)


def start_expiry(run_id: str, ended_at: datetime) -> None:
    """Let the artifacts of a run that ended live for ARTIFACT_TTL_MS more, in the caller's
    transaction.
    """
    Artifact.objects.filter(run_id=run_id).update(expires_at=_expiry(ended_at))


def expire_artifacts(*, limit: int = 500) -> int:
    """Turn artifacts past their time into tombstones, audited; return how many. Twice at once is
    safe.
    """
    due = Artifact.objects.filter(expires_at__lte=datetime.now(UTC), expired_at__isnull=True)
    expired = some = _expire(due.order_by("expires_at")[:limit])
    while some == limit:
        some = _expire(due.order_by("expires_at")[:limit])
        expired += some
    return expired


def expire_artifacts_of(run_ids: Sequence[str]) -> int:
    """Leave nothing but tombstones of these runs' artifacts, whatever time they had left."""
    return _expire(Artifact.objects.filter(run_id__in=run_ids, expired_at__isnull=True))


def _expire(rows: QuerySet[Artifact]) -> int:
    now = datetime.now(UTC)
    with transaction.atomic():
        mine = [
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
                for row in mine
            ]
        )
    return len(mine)


def collect_blobs() -> int:
    """Delete old bytes that no living row names; return how many files went."""
    gone = 0
    old = iter(list_old_files())
    while paths := list(itertools.islice(old, 500)):
        named = Artifact.objects.filter(
            sha256__in=[path.rsplit("/", 1)[-1] for path in paths], expired_at__isnull=True
        )
        kept = {blob_path(sha256) for sha256 in named.values_list("sha256", flat=True)}
        kept |= open_upload_names()
        # What follows a dot is somebody's copy of an upload, while it is being completed.
        gone += sum(delete_file(path) for path in paths if path.partition(".")[0] not in kept)
    return gone
