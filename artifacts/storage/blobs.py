"""Bytes by their sha256 in whatever storage STORAGES["artifacts"] names; the only place that
touches them.
"""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import IO, Any

from django.core.files.base import File
from django.core.files.storage import storages

from artifacts.storage.files import BlobStorage

GRACE_PERIOD = timedelta(
    hours=1
)  # a blob this young may belong to a writer that has not committed its row yet
log = logging.getLogger(__name__)


def blob_storage() -> BlobStorage:
    """Return the storage that the settings name."""
    storage: Any = storages["artifacts"]
    kept: BlobStorage = storage
    return kept


def blob_path(sha256: str) -> str:
    """Return a blob's place: two levels, so that no folder grows too long."""
    return f"{sha256[:2]}/{sha256[2:4]}/{sha256}"


def write_blob(data: bytes) -> str:
    """Keep the bytes durably and return their sha256. Blocks; call it before the row is written,
    outside a transaction.

    Raises:
        OSError: The storage is full or gone.
    """
    sha256 = hashlib.sha256(data).hexdigest()
    blob_storage().put(blob_path(sha256), io.BytesIO(data), size_bytes=len(data))
    return sha256


def open_blob(sha256: str, *, size_bytes: int) -> IO[Any] | None:
    """Open the bytes for reading (seekable), or return None where they are lost or not whole."""
    about = {"sha256": sha256}
    try:
        file: File[Any] = blob_storage().open(blob_path(sha256), "rb")
    except (FileNotFoundError, NotADirectoryError):
        log.error("the bytes of an artifact are missing from the storage", extra=about)
        return None
    if file.size != size_bytes:
        log.error("the bytes of an artifact are not whole in the storage", extra=about)
        file.close()
        return None
    return file


def list_old_files() -> Iterator[str]:
    """Yield the storage path of every blob, and everything that a dead writer left, that is over
    an hour old.
    """
    return blob_storage().list_before(datetime.now(UTC) - GRACE_PERIOD)


def delete_file(path: str) -> bool:
    """Delete what `list_old_files` named, unless a writer just found it; tell whether it went."""
    return blob_storage().delete_if_older(path, before=datetime.now(UTC) - GRACE_PERIOD)


def presigned_url(sha256: str, *, disposition: str) -> str | None:
    """Return where a caller can fetch the bytes from the storage itself for a minute, saved and
    never shown; None where the storage has no such way.
    """
    sign = getattr(blob_storage(), "presign_get", None)
    if sign is None:
        return None
    return str(sign(blob_path(sha256), disposition=disposition, expires_s=60))
