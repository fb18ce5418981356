"""The interface of a blob storage, and the default one: local files, written atomically."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Protocol

from django.core.files.base import File
from django.core.files.storage import FileSystemStorage


class BlobStorage(Protocol):
    """The interface of STORAGES["artifacts"]; failures are OSErrors."""

    def open(self, name: str, mode: str = ...) -> File[Any]:
        """Open for reading and seeking; FileNotFoundError if there is no such file."""

    def put(self, name: str, content: IO[bytes], *, size_bytes: int) -> None:
        """Store the content durably and update its time; skip the write if it is there."""

    def save(self, name: str, content: File[Any]) -> str:
        """Write the content durably, replacing an existing file."""

    def open_upload(self, name: str) -> File[Any]:
        """Open a staged upload for reading; bytes sent later do not affect what is read."""

    def promote_upload(self, upload: File[Any], name: str, *, size_bytes: int) -> None:
        """Store an open upload durably under another name."""

    def close_upload(self, upload: File[Any]) -> None:
        """Close an open upload."""

    def delete(self, name: str) -> None:
        """Delete a file; a missing file is no error."""

    def delete_if_older(self, name: str, *, before: datetime) -> bool:
        """Delete a file that was neither written nor put since `before`; return whether it was."""

    def list_before(self, before: datetime) -> Iterator[str]:
        """Yield the names of files that were neither written nor put since `before`."""


class BlobFileStorage(FileSystemStorage):
    """Local files, written to a temporary file, synced and renamed."""

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        """Return the name unchanged: an existing file is replaced."""
        return name

    def _save(self, name: str, content: File[Any]) -> str:
        target = Path(self.path(name))
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, draft = tempfile.mkstemp(dir=target.parent, prefix=".draft-")
        try:
            with os.fdopen(fd, "wb") as file:
                for chunk in content.chunks():
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            Path(draft).rename(target)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return name

    def put(self, name: str, content: IO[bytes], *, size_bytes: int) -> None:
        """Store the content unless the file is there with this size; update its time."""
        if not self._touch(name, size_bytes=size_bytes):
            content.seek(0)
            self._save(name, File(content))

    def open_upload(self, name: str) -> File[Any]:
        """Open a staged upload; a repeated upload replaces the file, not its content."""
        return self.open(name)

    def promote_upload(self, upload: File[Any], name: str, *, size_bytes: int) -> None:
        """Store an open upload under another name."""
        if not self._touch(name, size_bytes=size_bytes):
            upload.seek(0)
            self._save(name, upload)

    def close_upload(self, upload: File[Any]) -> None:
        """Close an open upload."""
        upload.close()

    def _touch(self, name: str, *, size_bytes: int) -> bool:
        """Update a blob's time, so that garbage collection keeps it for the writer that found it;
        False if it is missing or truncated.
        """
        path = Path(self.path(name))
        try:
            os.utime(path)
            return path.stat().st_size == size_bytes
        except FileNotFoundError:
            return False

    def delete_if_older(self, name: str, *, before: datetime) -> bool:
        """Delete a file that was not touched since `before`; return whether it was deleted.

        It is renamed first: an earlier touch shows in its time, and a later writer does not find
        the file and writes it again.
        """
        path = Path(self.path(name))
        aside = path.with_name(f".gone-{secrets.token_hex(8)}")
        try:
            path.rename(aside)
        except FileNotFoundError:
            return False
        if aside.stat().st_mtime < before.timestamp():
            aside.unlink()
            return True
        aside.rename(path)
        return False

    def list_before(self, before: datetime) -> Iterator[str]:
        """Yield the names of all blobs, uploads and drafts that were not touched since `before`."""
        root = Path(self.location)
        for folder, _, names in os.walk(root):
            for name in names:
                path = Path(folder) / name
                with contextlib.suppress(FileNotFoundError):
                    if path.stat().st_mtime < before.timestamp():
                        yield path.relative_to(root).as_posix()
