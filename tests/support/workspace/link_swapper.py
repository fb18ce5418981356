"""Swap pairs of names in a folder as fast as possible: `python -m … FOLDER A B C D`.

It swaps A with B and C with D, each atomically, until stdin is closed. Then it prints the number of
swaps.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys

EXCHANGE = 2


def main(folder: str, *names: str) -> None:
    """Swap the names until stdin is closed, then print the number of swaps."""
    libc = ctypes.CDLL(None, use_errno=True)
    folder_fd = os.open(folder, os.O_RDONLY)
    pairs = [(a.encode(), b.encode()) for a, b in zip(names[::2], names[1::2], strict=True)]
    swapped = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        for _ in range(16):
            for name, other in pairs:
                if libc.renameat2(folder_fd, name, folder_fd, other, EXCHANGE) == 0:
                    swapped += 1
    sys.stdout.write(str(swapped))


if __name__ == "__main__":
    main(*sys.argv[1:])
