"""Blobs: bytes by their SHA-256 in STORAGES["artifacts"]. All access to them goes through here."""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import IO, Any, cast

from django.core.files.base import File
from django.core.files.storage import storages

from artifacts.storage.files import BlobStorage

GRACE_PERIOD = timedelta(hours=1)  # the writer of a younger blob may not have committed its row yet
log = logging.getLogger(__name__)


def blob_storage() -> BlobStorage:
    """Return the configured storage."""
    storage: Any = storages["artifacts"]
    return cast(BlobStorage, storage)


def blob_path(sha256: str) -> str:
    """Return the storage path of a blob, in two levels of folders."""
    return f"{sha256[:2]}/{sha256[2:4]}/{sha256}"


def write_blob(data: bytes) -> str:
    """Store bytes durably and return their SHA-256. Blocks; call it outside a transaction, before
    the row is written.

    Raises:
        OSError: The storage is full or unavailable.
    """
    sha256 = hashlib.sha256(data).hexdigest()
    blob_storage().put(blob_path(sha256), io.BytesIO(data), size_bytes=len(data))
    return sha256


def open_blob(sha256: str, *, size_bytes: int) -> IO[Any] | None:
    """Open a blob for reading (seekable); None if it is missing or truncated, which is logged."""
    extra = {"sha256": sha256}
    try:
        file: File[Any] = blob_storage().open(blob_path(sha256), "rb")
    except (FileNotFoundError, NotADirectoryError):
        log.error("the bytes of an artifact are missing in the storage", extra=extra)
        return None
    if file.size != size_bytes:
        log.error("the bytes of an artifact have the wrong size in the storage", extra=extra)
        file.close()
        return None
    return file


def list_old_files() -> Iterator[str]:
    """Yield the paths of all blobs, uploads and leftover drafts older than GRACE_PERIOD."""
    return blob_storage().list_before(datetime.now(UTC) - GRACE_PERIOD)


def delete_file(path: str) -> bool:
    """Delete a path of `list_old_files` unless a writer used it since; return whether it did."""
    return blob_storage().delete_if_older(path, before=datetime.now(UTC) - GRACE_PERIOD)


def presigned_url(sha256: str, *, disposition: str) -> str | None:
    """Return a URL to download the bytes from the storage, valid for a minute; None if the storage
    has no presigned URLs.
    """
    sign = getattr(blob_storage(), "presign_get", None)
    if sign is None:
        return None
    return str(sign(blob_path(sha256), disposition=disposition, expires_s=60))
