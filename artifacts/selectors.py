"""Reading artifacts."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import IO, Any

from django.db.models import Case, When, Window
from django.db.models.functions import RowNumber

from artifacts.models import RESULT, Artifact
from artifacts.storage.blobs import open_blob
from decisions.errors import ArtifactExpired, ArtifactNotFound, InvalidInput
from decisions.identity.principals import Principal
from decisions.infra.clock import to_ms

CHUNK_MAX = 262_144  # bytes (S0 §4.5 artifactMaxChunkSize)
_TEXT_TYPES = frozenset(
    {"application/json", "application/xml", "application/javascript", "application/x-ndjson"}
)


def get_artifact(*, principal: Principal, artifact_id: str) -> Artifact:
    """Return the row of an artifact whose bytes are still kept.

    Raises:
        ArtifactNotFound: Unknown, or another workspace's.
        ArtifactExpired: Its time is over; the tombstone remembers it.
    """
    principal.require("artifacts:read")
    row = Artifact.objects.filter(id=artifact_id, workspace_id=principal.workspace_id).first()
    return _available(row, f"There is no artifact {artifact_id[:64]}.")


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
    """Tell whether its time is over, also while its bytes have not been collected yet."""
    return row.expired_at is not None or (
        row.expires_at is not None and row.expires_at <= datetime.now(UTC)
    )


def open_content(*, principal: Principal, artifact_id: str) -> tuple[Artifact, IO[Any]]:
    """Return an artifact's row and its bytes, opened for reading; the caller closes them.

    Raises:
        ArtifactNotFound, ArtifactExpired: As `get_artifact`; lost bytes read as not found and
            are logged.
    """
    row = get_artifact(principal=principal, artifact_id=artifact_id)
    return row, _open(row)


def _open(row: Artifact) -> IO[Any]:
    file = open_blob(row.sha256, size_bytes=row.size_bytes)
    if file is None:
        raise ArtifactNotFound(f"The bytes of the artifact {row.id} are lost.")
    return file


def read_chunk(
    *, principal: Principal, artifact_id: str, offset: int = 0, limit: int = CHUNK_MAX
) -> dict[str, Any]:
    """Return one ArtifactChunk (S0 §3.3); offset, length and totalSize count raw bytes.

    Text comes cut on whole characters (a limit smaller than one is stretched to it), anything else
    as base64.

    Raises:
        InvalidInput: The offset lies beyond the end, or inside a character.
        ArtifactNotFound, ArtifactExpired: As `get_artifact`.
    """
    row = get_artifact(principal=principal, artifact_id=artifact_id)
    return _chunk(row, offset, limit)


def read_chunk_of_run(
    *, run_id: str, artifact_id: str, offset: int = 0, limit: int = CHUNK_MAX
) -> dict[str, Any]:
    """Return one ArtifactChunk of an artifact that this run stored, for the run's own steps.

    Raises:
        InvalidInput: As `read_chunk`.
        ArtifactNotFound, ArtifactExpired: The run stored no such artifact, or it expired.
    """
    row = Artifact.objects.filter(id=artifact_id, run_id=run_id).first()
    row = _available(row, f"This run stored no artifact {artifact_id[:64]}.")
    return _chunk(row, offset, limit)


def _chunk(row: Artifact, offset: int, limit: int) -> dict[str, Any]:
    with _open(row) as file:
        if offset > row.size_bytes:
            raise InvalidInput(
                f"offset: {offset} lies beyond the artifact's {row.size_bytes} bytes.",
                details={"totalSize": row.size_bytes},
            )
        if is_text(row.mime_type):
            raw = _whole_characters(file, offset, limit)
            data = raw.decode("utf-8", errors="replace")
        else:
            file.seek(offset)
            raw = file.read(limit)
            data = base64.b64encode(raw).decode("ascii")
    return {
        "artifactId": row.id,
        "mimeType": row.mime_type,
        "totalSize": row.size_bytes,
        "offset": offset,
        "length": len(raw),
        "data": data,
        "complete": offset + len(raw) >= row.size_bytes,
    }


def is_text(mime_type: str) -> bool:
    """Tell whether chunks of this type come as text."""
    bare = mime_type.partition(";")[0].strip().lower()
    return bare.startswith("text/") or bare in _TEXT_TYPES or bare.endswith(("+json", "+xml"))


def _whole_characters(file: IO[Any], offset: int, limit: int) -> bytes:
    """Read at most `limit` bytes that end with a whole character, but at least one character.

    Bytes that are no UTF-8 count as a character each, so a reader always gets on.
    """
    behind = min(offset, 3)
    file.seek(offset - behind)
    raw = file.read(behind + limit + 3)
    if _cut_at(raw, behind) != behind:
        raise InvalidInput(
            f"offset: {offset} lies inside a character; go on at the last offset + length."
        )
    end = _cut_at(raw, min(behind + limit, len(raw)))
    if end == behind < len(raw):  # one character is longer than the limit
        end = behind + _length(raw[behind])
    return bytes(raw[behind:end])


def _cut_at(raw: bytes, at: int) -> int:
    """Return `at`, or the start of the character that a cut there would split."""
    for start in range(max(0, at - 3), at):
        end = start + _length(raw[start])
        if end > at and _is_character(raw[start:end]):
            return start
    return at


def _length(lead: int) -> int:
    """Return how many bytes the character has that starts with this one."""
    return 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


def _is_character(raw: bytes) -> bool:
    try:
        return len(raw.decode()) == 1
    except UnicodeDecodeError:
        return False


def list_run_artifacts(*, principal: Principal, run_id: str) -> dict[str, Any]:
    """Return {artifacts[]} of a run, the whole result first, then in the order they were made."""
    principal.require("artifacts:read")
    rows = Artifact.objects.filter(run_id=run_id, workspace_id=principal.workspace_id)
    return {"artifacts": [describe_artifact(row) for row in sorted(rows, key=_in_order)]}


def artifact_ids_of(run_ids: Iterable[str]) -> dict[str, list[str]]:
    """Return the artifact ids of each of these runs, the whole result first; one query."""
    found = Artifact.objects.filter(run_id__in=list(run_ids)).values_list(
        "run_id", "kind", "created_at", "id"
    )
    named: dict[str, list[str]] = {}
    for run_id, *_, artifact_id in sorted(found, key=lambda row: (row[1] != RESULT, *row[2:])):
        named.setdefault(run_id, []).append(artifact_id)
    return named


def artifact_briefs_of(
    *, principal: Principal, run_ids: Sequence[str], each: int = 3
) -> list[dict[str, Any]]:
    """Return what lists show of the first living artifacts of these runs, `each` of a run."""
    principal.require("artifacts:read")
    rows = Artifact.objects.filter(
        run_id__in=run_ids, workspace_id=principal.workspace_id, expired_at__isnull=True
    )
    is_result = Case(When(kind=RESULT, then=0), default=1)
    place = Window(RowNumber(), partition_by="run_id", order_by=[is_result, "created_at", "id"])
    found: dict[str, list[Artifact]] = {run_id: [] for run_id in run_ids}
    for row in sorted(rows.alias(place=place).filter(place__lte=each), key=_in_order):
        found[row.run_id].append(row)
    return [describe_artifact(row) for run_id in run_ids for row in found[run_id]]


def _in_order(row: Artifact) -> tuple[bool, Any, str]:
    return row.kind != RESULT, row.created_at, row.id


def describe_artifact(row: Artifact) -> dict[str, Any]:
    """Return what a list shows of an artifact."""
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
