"""The default storage of artifact bytes: files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.files.base import File
from django.core.files.storage import FileSystemStorage


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

    def touch(self, name: str, *, size_bytes: int) -> bool:
        """Make a blob young again, so that the collector leaves it to the writer that just found
        it; False: it is not there, or not whole.
        """
        path = Path(self.path(name))
        try:
            os.utime(path)
            return path.stat().st_size == size_bytes
        except FileNotFoundError:
            return False

    def delete_unless_young(self, name: str, *, before: datetime) -> bool:
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
