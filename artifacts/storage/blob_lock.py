"""A lock per blob: shared for writers, exclusive for garbage collection.

S3 has no conditional delete by age: between the collector's check and its delete, a writer could
find the old blob and rely on it. With PostgreSQL, which several machines share, it is an advisory
lock; with SQLite, which one machine uses, a file lock.
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
    """Hold the lock of a blob for the length of a block; waits until it is free."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
    lock = _advisory(number, shared) if connection.vendor == "postgresql" else _file(number, shared)
    with lock:
        yield


@contextlib.contextmanager
def _advisory(number: int, shared: bool) -> Iterator[None]:
    """Hold an advisory lock in a transaction on a connection of its own, closed at the end: the
    calling threads do not close stale connections, so a reused one could be dead. A lock of the
    session would stay with a pooler's connection, which others use next.
    """
    kind = "_shared" if shared else ""
    with contextlib.closing(connection.copy()) as own:
        own.set_autocommit(False)
        with own.cursor() as cursor:
            cursor.execute(f"SELECT pg_advisory_xact_lock{kind}(%s)", [number])
        yield  # closing the connection ends the transaction, also if it is lost already


@contextlib.contextmanager
def _file(number: int, shared: bool) -> Iterator[None]:
    folder = Path(settings.CONTINUITY_HOME) / "locks"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # One of 256 files: blobs that share a file only wait for each other.
    fd = os.open(folder / f"blob-{number % 256}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
