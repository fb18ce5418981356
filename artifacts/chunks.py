"""Chunks of an artifact (S0 §3.3): text cut on whole characters, anything else as base64."""

from __future__ import annotations

import base64
from typing import IO, Any

from artifacts.models import Artifact
from artifacts.selectors import get_artifact, get_artifact_of_run, open_bytes
from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal

CHUNK_MAX = 262_144  # bytes (S0 §4.5 artifactMaxChunkSize)
_TEXT_TYPES = frozenset(
    {"application/json", "application/xml", "application/javascript", "application/x-ndjson"}
)


def read_chunk(
    *, principal: Principal, artifact_id: str, offset: int = 0, limit: int = CHUNK_MAX
) -> dict[str, Any]:
    """Return one ArtifactChunk (S0 §3.3); offset, limit, length and totalSize count raw bytes.

    Text ends on a whole character; a limit smaller than one character is raised to fit it.

    Raises:
        InvalidInput: The offset is beyond the end, or inside a character.
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
    return _chunk(get_artifact_of_run(run_id=run_id, artifact_id=artifact_id), offset, limit)


def _chunk(row: Artifact, offset: int, limit: int) -> dict[str, Any]:
    with open_bytes(row) as file:
        if offset > row.size_bytes:
            raise InvalidInput(
                f"offset: {offset} is beyond the artifact's {row.size_bytes} bytes.",
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
    """Return whether chunks of this media type are returned as text."""
    bare = mime_type.partition(";")[0].strip().lower()
    return bare.startswith("text/") or bare in _TEXT_TYPES or bare.endswith(("+json", "+xml"))


def _whole_characters(file: IO[Any], offset: int, limit: int) -> bytes:
    """Read at most `limit` bytes that end on a whole character, and at least one character.

    A byte that is not valid UTF-8 counts as one character, so every read makes progress.
    """
    before = min(offset, 3)
    file.seek(offset - before)
    raw = file.read(before + limit + 3)
    if _character_start(raw, before) != before:
        raise InvalidInput(
            f"offset: {offset} is inside a character; continue at the last offset + length."
        )
    end = _character_start(raw, min(before + limit, len(raw)))
    if end == before < len(raw):  # one character is longer than the limit
        end = before + _length(raw[before])
    return bytes(raw[before:end])


def _character_start(raw: bytes, at: int) -> int:
    """Return `at`, or the start of the character that a cut at `at` would split."""
    for start in range(max(0, at - 3), at):
        end = start + _length(raw[start])
        if end > at and _is_character(raw[start:end]):
            return start
    return at


def _length(lead: int) -> int:
    """Return the number of bytes of the character that starts with this lead byte."""
    return 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


def _is_character(raw: bytes) -> bool:
    try:
        return len(raw.decode()) == 1
    except UnicodeDecodeError:
        return False
