"""Store artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings

from artifacts.models import Artifact
from artifacts.storage.blobs import write_blob
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
