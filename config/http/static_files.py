"""Addresses of static files with a version of their content, so that browsers keep a file until it
changes: `/static/continuity/admin.js?v=3f2a…`.

The files are served from the applications, and nothing has to be collected after an upgrade.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlencode

from django.contrib.staticfiles.finders import find
from django.contrib.staticfiles.storage import StaticFilesStorage

UNCHANGED = "public, max-age=31536000, immutable"
MAY_CHANGE = "public, max-age=86400"
_VERSION_LENGTH = 12


class VersionedStorage(StaticFilesStorage):
    """Adds the version of its content to the address of a file."""

    def url(self, name: str | None) -> str:
        """Return the address; without a version if there is no such file, or for a folder."""
        address: str = super().url(name)
        path = _path_of(name or "")
        version = "" if path is None else version_of(path)
        return f"{address}?{urlencode({'v': version})}" if version else address


def version_of(path: Path) -> str:
    """Return the version of a file's content; empty if there is no such file."""
    try:
        state = path.stat()
    except OSError:
        return ""
    return _digest(path, state.st_mtime_ns, state.st_size) if path.is_file() else ""


def cache_control(path: Path, version: str) -> str:
    """Return how long browsers may keep a file that was requested with this version.

    An address with another version than the file's is that of a page of an earlier or later
    release: it must not be kept for longer than without one.
    """
    return UNCHANGED if version and version == version_of(path) else MAY_CHANGE


@lru_cache(maxsize=1024)
def _path_of(name: str) -> Path | None:
    found = find(name) if name else None
    return Path(found) if isinstance(found, str) else None


@lru_cache(maxsize=1024)
def _digest(path: Path, modified_ns: int, size: int) -> str:
    """Return the digest of a file's content, which is read again once the file was written."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:_VERSION_LENGTH]
