"""Where uploads lie until they are artifacts, and the ticket that lets one in.

A ticket carries its own proof, so that the door knows how much to take before it asks the database.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from artifacts.models import ArtifactUpload
from decisions.security.keys import mac, mac_matches

FOLDER = "uploads"
COMPLETING = timedelta(minutes=10)  # past its time an upload may still be read to its end


@dataclass(frozen=True, slots=True)
class Ticket:
    """Leave to send `size_bytes` bytes for an upload."""

    upload_id: str
    size_bytes: int


def create_ticket(upload: ArtifactUpload) -> str:
    """Return the ticket of an upload; whoever has it may send the bytes until it expires."""
    facts = f"{upload.id}.{upload.size_bytes}.{int(upload.expires_at.timestamp())}"
    return f"{facts}.{mac('upload', facts.encode())}"


def read_ticket(text: str) -> Ticket | None:
    """Return what a ticket allows now, None where it is none of ours or too old."""
    facts, _, proof = text.rpartition(".")
    if not facts.isascii() or not mac_matches("upload", facts.encode(), proof):
        return None
    upload_id, size_bytes, expires = facts.rsplit(".", 2)
    if int(expires) <= datetime.now(UTC).timestamp():
        return None
    return Ticket(upload_id, int(size_bytes))


def staging_name(upload_id: str) -> str:
    """Return the name of an upload's bytes in the storage."""
    return f"{FOLDER}/{upload_id}"


def open_upload_names() -> set[str]:
    """Return the places of the uploads that may still become artifacts."""
    alive = ArtifactUpload.objects.filter(
        artifact_id__isnull=True, expires_at__gt=datetime.now(UTC) - COMPLETING
    )
    return {staging_name(upload_id) for upload_id in alive.values_list("id", flat=True)}
