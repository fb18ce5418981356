"""Queries of artifacts: one row, its bytes, lists for runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import IO, Any

from django.db.models import Case, When, Window
from django.db.models.functions import RowNumber

from artifacts.models import RESULT, Artifact
from artifacts.storage.blobs import open_blob
from decisions.foundation.errors import ArtifactExpired, ArtifactNotFound
from decisions.foundation.infra.clock import to_ms
from decisions.identity.authority import seen_by
from decisions.identity.principals import Principal

BRIEFS_PER_RUN = 3


def get_artifact(*, principal: Principal, artifact_id: str) -> Artifact:
    """Return the row of an artifact that has not expired.

    Raises:
        ArtifactNotFound: Unknown, or another's.
        ArtifactExpired: Its time to live is over; only the tombstone row is left.
    """
    principal.require("artifacts:read")
    row = Artifact.objects.filter(seen_by(principal), id=artifact_id).first()
    return _available(row, f"There is no artifact {artifact_id[:64]}.")


def get_artifact_of_run(*, run_id: str, artifact_id: str) -> Artifact:
    """Return the row of an artifact that this run stored, for the run's own steps.

    Raises:
        ArtifactNotFound: This run stored no such artifact.
        ArtifactExpired: As `get_artifact`.
    """
    row = Artifact.objects.filter(id=artifact_id, run_id=run_id).first()
    return _available(row, f"This run stored no artifact {artifact_id[:64]}.")


def _available(row: Artifact | None, not_found: str) -> Artifact:
    if row is None:
        raise ArtifactNotFound(not_found)
    if is_expired(row):
        raise ArtifactExpired(
            f"The artifact {row.id} expired.",
            details={"runId": row.run_id, "expiredAt": to_ms(row.expires_at)},
        )
    return row


def is_expired(row: Artifact) -> bool:
    """Return whether the time to live is over, also while the bytes are not deleted yet."""
    return row.expired_at is not None or (
        row.expires_at is not None and row.expires_at <= datetime.now(UTC)
    )


def open_content(*, principal: Principal, artifact_id: str) -> tuple[Artifact, IO[Any]]:
    """Return an artifact's row and its bytes, opened for reading; the caller closes the file.

    Raises:
        ArtifactNotFound: As `get_artifact`, or as `open_bytes`.
        ArtifactExpired: As `get_artifact`.
    """
    row = get_artifact(principal=principal, artifact_id=artifact_id)
    return row, open_bytes(row)


def open_bytes(row: Artifact) -> IO[Any]:
    """Return an artifact's bytes, opened for reading; the caller closes the file.

    Raises:
        ArtifactNotFound: The bytes are missing or truncated in the storage, which is logged.
    """
    file = open_blob(row.sha256, size_bytes=row.size_bytes)
    if file is None:
        raise ArtifactNotFound(f"The bytes of the artifact {row.id} are lost.")
    return file


def list_run_artifacts(*, principal: Principal, run_id: str) -> dict[str, Any]:
    """Return {artifacts[]} of a run: the whole result first, then in order of creation."""
    principal.require("artifacts:read")
    rows = Artifact.objects.filter(seen_by(principal), run_id=run_id)
    return {"artifacts": [describe_artifact(row) for row in sorted(rows, key=_in_order)]}


def artifact_ids_of(run_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the artifact ids of each of these runs, the whole result first; one query."""
    found = Artifact.objects.filter(run_id__in=list(run_ids)).values_list(
        "run_id", "kind", "created_at", "id"
    )
    by_run: dict[str, list[str]] = {}
    for run_id, *_, artifact_id in sorted(found, key=lambda row: (row[1] != RESULT, *row[2:])):
        by_run.setdefault(run_id, []).append(artifact_id)
    return by_run


def artifact_briefs_of(*, principal: Principal, run_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Describe the first three artifacts of each of these runs that have not expired."""
    principal.require("artifacts:read")
    rows = Artifact.objects.filter(seen_by(principal), run_id__in=run_ids, expired_at__isnull=True)
    is_result = Case(When(kind=RESULT, then=0), default=1)
    position = Window(RowNumber(), partition_by="run_id", order_by=[is_result, "created_at", "id"])
    found: dict[str, list[Artifact]] = {run_id: [] for run_id in run_ids}
    first = rows.alias(position=position).filter(position__lte=BRIEFS_PER_RUN)
    for row in sorted(first, key=_in_order):
        found[row.run_id].append(row)
    return [describe_artifact(row) for run_id in run_ids for row in found[run_id]]


def _in_order(row: Artifact) -> tuple[bool, Any, str]:
    return row.kind != RESULT, row.created_at, row.id


def describe_artifact(row: Artifact) -> dict[str, Any]:
    """Return an artifact's row as JSON, without its bytes."""
    return {
        "artifactId": row.id,
        "runId": row.run_id,
        "kind": row.kind,
        "name": row.name,
        "mimeType": row.mime_type,
        "sizeBytes": row.size_bytes,
        "sha256": row.sha256,
        "createdAt": to_ms(row.created_at),
        "expiresAt": to_ms(row.expires_at),
        "expired": is_expired(row),
    }
