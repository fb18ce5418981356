"""The default storage of artifact bytes: files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
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

    def touch(self, name: str) -> None:
        """Make a blob young again, so that the collector leaves it to the writer that just found
        it.

        Raises:
            FileNotFoundError: It is gone already.
        """
        os.utime(self.path(name))
