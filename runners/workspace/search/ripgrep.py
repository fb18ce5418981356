"""Ask ripgrep which files may hold a match.

It is asked for names alone. What is handed out is read by us, through the sandbox: a link that is
swapped in while ripgrep walks makes it look elsewhere, but nothing of what it sees there comes out.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Generator, Sequence
from functools import cache
from typing import NamedTuple

from runners.workspace.errors import TooSlow

_ARGUMENT_BYTES = 500_000
_AT_ONCE = 64  # names that are handed on together, or each would be a turn of its own
# Nothing of the caller's own settings, no ignore files; binary files are left at their first NUL.
_ALWAYS = (
    "--no-config", "--no-ignore", "--hidden", "--no-follow", "--no-messages", "--color=never",
    "--no-mmap", "--files-with-matches", "--null",
)  # fmt: skip


class RipgrepFailed(Exception):
    """It is not there, or does not take the expression."""


class Asked(NamedTuple):
    """What ripgrep is asked.

    Attributes:
        folder: an open folder.
        expression: in its own dialect.
        file_glob: the last name of it spares files of other names.
        forbidden: globs of what is not looked at.
        limit: larger files are left out; bytes.
        until: `time.monotonic()` value after which it is killed.
    """

    folder: int
    expression: str
    file_glob: str | None
    forbidden: Sequence[str]
    limit: int
    until: float


@cache
def find_ripgrep() -> str | None:
    """Return where ripgrep is, None where it is not installed."""
    return shutil.which("rg")


def names_in(folders: Sequence[str], asked: Asked) -> Generator[list[str]]:
    """Yield the files directly in some folders that may hold a line that matches, in no order.

    Args:
        folders: relative to the one that is open, each with a slash at its end, "" for itself.

    Raises:
        RipgrepFailed: Search without it, whatever it told so far.
        TooSlow: It was killed.
    """
    for some in _pieces([f"./{one}" for one in folders]):
        yield from _told(["--max-depth=1"], some, asked)


def names_below(asked: Asked) -> Generator[list[str]]:
    """Yield such files anywhere below the open folder; see `names_in`."""
    yield from _told([], ["./"], asked)


def _told(depth: Sequence[str], folders: Sequence[str], asked: Asked) -> Generator[list[str]]:
    command = [find_ripgrep() or "", *_ALWAYS, *depth, f"--max-filesize={asked.limit}"]
    command += [*_globs(asked), "-e", asked.expression, "--", *folders]
    with _start(command, asked.folder) as ran:
        try:
            if ran.stdout is not None:
                yield from _names(ran.stdout.fileno(), asked.until)
            said = ran.communicate()[1]
        finally:
            ran.kill()
    # 2 with nothing said is a file that could not be read, which is left out like any other.
    if ran.returncode not in {0, 1, 2} or said.strip():
        raise RipgrepFailed(said.decode(errors="replace")[:500])


def _names(told: int, until: float) -> Generator[list[str]]:
    """Yield the names that come through a pipe, some at a time, until it is closed."""
    ready = select.poll()
    ready.register(told)
    names: list[bytes] = []
    rest, more = b"", True
    while more:
        if not ready.poll(max(0.0, until - time.monotonic()) * 1000):
            raise TooSlow("The search did not end in time; name a folder further down.")
        data = os.read(told, 1 << 16)
        *whole, rest = (rest + data).split(b"\0")
        names += whole
        more = bool(data)
        if names and (len(names) >= _AT_ONCE or not more):
            yield [os.fsdecode(name).removeprefix("./") for name in names]
            names = []


def _globs(asked: Asked) -> list[str]:
    """Return what spares ripgrep a look; whatever it tells is judged again."""
    told = []
    last = (asked.file_glob or "").rpartition("/")[2]
    if last != "**" and re.fullmatch(r"[\w.*?-]+", last):
        told.append(f"--glob={last}")
    return told + [f"--iglob=!{glob}" for glob in asked.forbidden]


def _pieces(arguments: Sequence[str]) -> Generator[list[str]]:
    """Yield the arguments in as many pieces as one command line takes."""
    some, size = [], 0
    for one in arguments:
        some.append(one)
        size += len(os.fsencode(one)) + 9
        if size > _ARGUMENT_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _start(command: Sequence[str], folder: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            # The folder that is open, whatever has been put in its place meanwhile.
            cwd=f"/proc/self/fd/{folder}",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
        )
    except OSError as exc:
        raise RipgrepFailed(str(exc)) from None
