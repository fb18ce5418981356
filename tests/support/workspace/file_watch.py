"""Record with inotify which files and folders any process opens."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

_OPEN = 0x20  # IN_OPEN
_EVENT = struct.Struct("iIII")


@contextlib.contextmanager
def watch_opened(paths: Iterable[Path]) -> Iterator[set[Path]]:
    """Yield a set that contains, after the block, the paths that were opened in the block."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        known = {libc.inotify_add_watch(watch, os.fsencode(path), _OPEN): path for path in paths}
        if watch < 0 or -1 in known:
            raise OSError(ctypes.get_errno(), "nothing can be watched")
        opened: set[Path] = set()
        yield opened
        # The kernel queues the event before the `open` call returns.
        opened |= {known[number] for number in _read(watch)}
    finally:
        os.close(watch)


def _read(watch: int) -> Iterator[int]:
    with contextlib.suppress(BlockingIOError):
        while data := os.read(watch, 1 << 16):
            at = 0
            while at < len(data):
                number, _, _, length = _EVENT.unpack_from(data, at)
                yield number
                at += _EVENT.size + length
