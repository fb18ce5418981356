"""What a storage of artifact bytes can do, and the default one: files that appear whole or not at
all.
"""

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
    """What `artifacts.storage.blobs` asks of STORAGES["artifacts"]; failures are OSErrors."""

    def open(self, name: str, mode: str = ...) -> File[Any]:
        """Open for reading, from anywhere; FileNotFoundError where there is none."""

    def put(self, name: str, content: IO[bytes], *, size_bytes: int) -> None:
        """Have the content there durably, and young."""

    def save(self, name: str, content: File[Any]) -> str:
        """Write the content, durably, over what may be there."""

    def open_upload(self, place: str) -> File[Any]:
        """Open an upload so that what is sent from now on does not change what is read."""

    def promote_upload(self, upload: File[Any], name: str, *, size_bytes: int) -> None:
        """Make an upload that was seized the content of that name, durably."""

    def close_upload(self, upload: File[Any]) -> None:
        """Let go of an upload that was seized."""

    def delete(self, name: str) -> None:
        """Delete; what is not there is no trouble."""

    def delete_if_older(self, name: str, *, before: datetime) -> bool:
        """Delete what nobody wrote or found since that time; tell whether it went."""

    def list_before(self, before: datetime) -> Iterator[str]:
        """Yield what nobody wrote or found since that time."""


class BlobFileStorage(FileSystemStorage):
    """Files named by their content: written beside, synced, renamed; writing one
    again is harmless.
    """

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        """Return the name itself: one content, one name."""
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
        """Have the content there, young; it is written only where it is not there whole."""
        if not self._touch(name, size_bytes=size_bytes):
            content.seek(0)
            self._save(name, File(content))

    def open_upload(self, place: str) -> File[Any]:
        """Open an upload; one that is sent again is another file."""
        return self.open(place)

    def promote_upload(self, upload: File[Any], name: str, *, size_bytes: int) -> None:
        """Make an upload that was seized the content of that name."""
        if not self._touch(name, size_bytes=size_bytes):
            upload.seek(0)
            self._save(name, upload)

    def close_upload(self, upload: File[Any]) -> None:
        """Let go of an upload that was seized."""
        upload.close()

    def _touch(self, name: str, *, size_bytes: int) -> bool:
        """Make a blob young again, so that the collector leaves it to the writer that just found
        it; False: it is not there, or not whole.
        """
        path = Path(self.path(name))
        try:
            os.utime(path)
            return path.stat().st_size == size_bytes
        except FileNotFoundError:
            return False

    def delete_if_older(self, name: str, *, before: datetime) -> bool:
        """Delete a file that nobody touched since `before`; tell whether it went.

        It is moved aside first: a writer that touched it before is seen by its time, one that comes
        after does not find it and writes it anew.
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
        """Yield every blob, upload and draft that nobody touched since that time."""
        root = Path(self.location)
        for folder, _, names in os.walk(root):
            for name in names:
                path = Path(folder) / name
                with contextlib.suppress(FileNotFoundError):
                    if path.stat().st_mtime < before.timestamp():
                        yield path.relative_to(root).as_posix()
