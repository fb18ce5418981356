"""A lock on one content's bytes, held by those who keep it together and by its collector alone.

S3 deletes without asking how old a thing is: between a collector's look and its deletion a writer
could find the old bytes and rely on them. Workers of several machines share a PostgreSQL, so the
lock is there; SQLite is one machine's, and so is the lock on a file beside it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import connection


@contextlib.contextmanager
def blob_lock(name: str, *, shared: bool) -> Iterator[None]:
    """Hold the lock of a name for the length of a block, waiting for it first."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
    held = _advisory(number, shared) if connection.vendor == "postgresql" else _file(number, shared)
    with held:
        yield


@contextlib.contextmanager
def _advisory(number: int, shared: bool) -> Iterator[None]:
    """Hold it on a connection made for it, whose end is the lock's: bytes are kept on threads that
    nobody tidies, where one that stayed open would be dead after a restart of the database.
    """
    kind = "_shared" if shared else ""
    with contextlib.closing(connection.copy()) as own:
        with own.cursor() as cursor:
            cursor.execute(f"SELECT pg_advisory_lock{kind}(%s)", [number])
        yield


@contextlib.contextmanager
def _file(number: int, shared: bool) -> Iterator[None]:
    folder = Path(settings.CONTINUITY_HOME) / "locks"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # One of 256 files: a lock that two names share makes one wait for the other, no more.
    fd = os.open(folder / f"blob-{number % 256}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
