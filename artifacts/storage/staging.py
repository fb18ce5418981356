"""Staged uploads: their names in the storage, and the signed tickets that allow sending the bytes.

A ticket is self-contained, so that the endpoint knows the size limit before it queries the
database.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from artifacts.models import ArtifactUpload
from decisions.security.keys import mac, mac_matches

FOLDER = "uploads"
COMPLETING = timedelta(minutes=10)  # an expired upload may still be in the middle of completion


@dataclass(frozen=True, slots=True)
class Ticket:
    """Permission to send `size_bytes` bytes for an upload."""

    upload_id: str
    size_bytes: int


def create_ticket(upload: ArtifactUpload) -> str:
    """Return the ticket of an upload, which permits sending the bytes until the upload expires."""
    claims = f"{upload.id}.{upload.size_bytes}.{int(upload.expires_at.timestamp())}"
    return f"{claims}.{mac('upload', claims.encode())}"


def read_ticket(text: str) -> Ticket | None:
    """Return a ticket, or None if its signature is invalid or it has expired."""
    claims, _, proof = text.rpartition(".")
    if not claims.isascii() or not mac_matches("upload", claims.encode(), proof):
        return None
    upload_id, size_bytes, expires = claims.rsplit(".", 2)
    if int(expires) <= datetime.now(UTC).timestamp():
        return None
    return Ticket(upload_id, int(size_bytes))


def staging_name(upload_id: str) -> str:
    """Return the name of an upload's staged bytes in the storage."""
    return f"{FOLDER}/{upload_id}"


def open_upload_names() -> set[str]:
    """Return the staging names of the uploads that may still become artifacts."""
    open_uploads = ArtifactUpload.objects.filter(
        artifact_id__isnull=True, expires_at__gt=datetime.now(UTC) - COMPLETING
    )
    return {staging_name(upload_id) for upload_id in open_uploads.values_list("id", flat=True)}
