"""Staged uploads: their names in the storage, and the signed tickets that allow sending the bytes.

A ticket is self-contained, so that the endpoint knows the size limit before it queries the
database. The result of a browser action has no row: it is taken from the staging area as soon as
the action has ended, and garbage collection deletes what was left there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from artifacts.models import ArtifactUpload
from decisions.foundation.security.keys import mac, mac_matches

UPLOAD_PATH = "/api/v1/artifacts/upload/"  # of the endpoint that receives the bytes
FOLDER = "uploads"
RESULT_PREFIX = "res_"  # of the ids of uploads of results
COMPLETING = timedelta(minutes=10)  # an expired upload may still be in the middle of completion


@dataclass(frozen=True, slots=True)
class Ticket:
    """Permission to send `size_bytes` bytes for an upload.

    Attributes:
        is_result: of a browser action: up to `size_bytes`, and of any media type.
    """

    upload_id: str
    size_bytes: int
    is_result: bool = False


def create_ticket(upload: ArtifactUpload) -> str:
    """Return the ticket of an upload, which permits sending the bytes until the upload expires."""
    return _signed(upload.id, upload.size_bytes, upload.expires_at)


def create_result_ticket(upload_id: str, max_bytes: int, expires_at: datetime) -> str:
    """Return the ticket for the result of a browser action, whose size is not known yet."""
    return _signed(upload_id, max_bytes, expires_at)


def _signed(upload_id: str, size_bytes: int, expires_at: datetime) -> str:
    claims = f"{upload_id}.{size_bytes}.{int(expires_at.timestamp())}"
    return f"{claims}.{mac('upload', claims.encode())}"


def read_ticket(text: str) -> Ticket | None:
    """Return a ticket, or None if its signature is invalid or it has expired."""
    claims, _, proof = text.rpartition(".")
    if not claims.isascii() or not mac_matches("upload", claims.encode(), proof):
        return None
    upload_id, size_bytes, expires = claims.rsplit(".", 2)
    if int(expires) <= datetime.now(UTC).timestamp():
        return None
    return Ticket(upload_id, int(size_bytes), is_result=upload_id.startswith(RESULT_PREFIX))


def staging_name(upload_id: str) -> str:
    """Return the name of an upload's staged bytes in the storage."""
    return f"{FOLDER}/{upload_id}"


def open_upload_names() -> set[str]:
    """Return the staging names of the uploads that may still become artifacts."""
    open_uploads = ArtifactUpload.objects.filter(
        artifact_id__isnull=True, expires_at__gt=datetime.now(UTC) - COMPLETING
    )
    return {staging_name(upload_id) for upload_id in open_uploads.values_list("id", flat=True)}
