"""Ask ripgrep which lines may match.

It is asked where they are, not for what they say. What is handed out is read by us, through the
sandbox: a link that is swapped in while ripgrep walks makes it look elsewhere, but nothing of what
it sees there comes out.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Generator, Iterable, Sequence
from functools import cache
from typing import NamedTuple

from runners.workspace.errors import WorkspaceTimeout

_ARGUMENT_BYTES = 500_000
_AT_ONCE = 64  # files that are handed on together, or each would be a turn of its own
# Lines it tells of in a file: where it holds more, to look at all its lines is as quick.
_LINES = 20
# Nothing of the caller's own settings, no ignore files; binary files are left at their first NUL.
_ALWAYS = (
    "--no-config",
    "--no-ignore",
    "--hidden",
    "--no-follow",
    "--no-messages",
    "--color=never",
    "--no-mmap",
    "--with-filename",
    "--no-heading",
    "--null",
    "--byte-offset",
    "--no-line-number",
    "--max-columns=1",
    f"--max-count={_LINES}",
)
_LINE = re.compile(rb"([^\0]+)\0([0-9]+):[^\n]*\n")  # "./a.txt\0" "123:" "[Omitted long line]"
# What follows the lines of a file that turns out to be binary, after its name.
_BINARY = re.compile(rb": WARNING: stopped searching binary file after match [^\n]*\n")
_PIPE_BYTES = 1 << 20
_NAME_BYTES = 1 << 16  # more without a line is no answer of ripgrep's

# The files that may hold a match; where the lines that may match begin, in bytes from the start of
# the text (a BOM is no part of it), or None for all lines.
CandidateLines = dict[str, list[int] | None]


class RipgrepFailed(Exception):
    """It is not there, does not take the expression, or its answer cannot be read."""


class RipgrepQuery(NamedTuple):
    """What ripgrep is asked.

    Attributes:
        folder: an open folder.
        expression: in its own dialect.
        file_glob: the last name of it spares files of other names.
        forbidden: a glob of what is not looked at.
        limit: larger files are left out; bytes.
        until: `time.monotonic()` value after which it is killed.
    """

    folder: int
    expression: str
    file_glob: str | None
    forbidden: str
    limit: int
    deadline: float


@cache
def find_ripgrep() -> str | None:
    """Return where ripgrep is, None where it is not installed."""
    return shutil.which("rg")


def candidate_lines_in(folders: Sequence[str], asked: RipgrepQuery) -> Generator[CandidateLines]:
    """Yield the lines that may match in the files directly in some folders; each file once, in no
    order.

    Args:
        folders: relative to the one that is open, each with a slash at its end, "" for itself.

    Raises:
        RipgrepFailed: Search without it, whatever it told so far.
        WorkspaceTimeout: It was killed.
    """
    for some in _pieces([f"./{one}" for one in folders]):
        yield from _told(["--max-depth=1"], some, asked)


def candidate_lines_below(asked: RipgrepQuery) -> Generator[CandidateLines]:
    """Yield such lines in the files anywhere below the open folder; see `lines_in`."""
    yield from _told([], ["./"], asked)


def _told(
    depth: Sequence[str], folders: Sequence[str], asked: RipgrepQuery
) -> Generator[CandidateLines]:
    command = [find_ripgrep() or "", *_ALWAYS, *depth, f"--max-filesize={asked.limit}"]
    command += [*_globs(asked), "-e", asked.expression, "--", *folders]
    with _start(command, asked.folder) as ran:
        try:
            if ran.stdout is not None:
                _widen(ran.stdout.fileno())
                yield from _by_file(_pieces_of(ran.stdout.fileno(), asked.deadline))
            said = ran.communicate()[1]
        finally:
            ran.kill()
    # 2 with nothing said is a file that could not be read, which is left out like any other.
    if ran.returncode not in {0, 1, 2} or said.strip():
        raise RipgrepFailed(said.decode(errors="replace")[:500])


def _pieces_of(told: int, deadline: float) -> Generator[bytes]:
    """Yield what comes through a pipe until it is closed."""
    ready = select.poll()
    ready.register(told)
    data = b"-"
    while data:
        if not ready.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise WorkspaceTimeout("The search did not end in time; name a folder further down.")
        data = os.read(told, _PIPE_BYTES)
        yield data


def _widen(pipe: int) -> None:
    """Let ripgrep go on while we look into what it told of."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):  # an account may hold so much in pipes, and no more
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _by_file(told: Iterable[bytes]) -> Generator[CandidateLines]:
    """Yield what ripgrep says, some files at a time; it says all of a file at a stretch."""
    rest, last = b"", b""
    places: dict[bytes, list[int]] = {}
    for data in told:
        rest, last = _read_lines(rest + data, last, places)
        if len(places) > _AT_ONCE:
            unfinished = places.pop(last)
            yield _named(places)
            places = {last: unfinished}
    if rest:
        raise RipgrepFailed("Its answer ends in the midst of a line.")
    yield _named(places)


def _read_lines(data: bytes, last: bytes, places: dict[bytes, list[int]]) -> tuple[bytes, bytes]:
    """Add the lines that are told whole; return what is left, and the last file's name."""
    at = 0
    while at < len(data):
        if last and data.startswith(last, at) and (said := _BINARY.match(data, at + len(last))):
            at = said.end()
            continue
        line = _LINE.match(data, at)
        if line is None:
            break
        last, at = line[1], line.end()
        places.setdefault(last, []).append(int(line[2]))
    if len(data) - at > _NAME_BYTES:
        raise RipgrepFailed("Its answer holds no line.")
    return data[at:], last


def _named(places: dict[bytes, list[int]]) -> CandidateLines:
    if any(b"\n" in name for name in places):
        raise RipgrepFailed("A name is of two lines, or it says what it is not known to say.")
    return {
        os.fsdecode(name).removeprefix("./"): lines if len(lines) < _LINES else None
        for name, lines in places.items()
    }


def _globs(asked: RipgrepQuery) -> list[str]:
    """Return what spares ripgrep a look; whatever it tells is judged again."""
    told = []
    last = (asked.file_glob or "").rpartition("/")[2]
    if last != "**" and re.fullmatch(r"[\w.*?-]+", last):
        told.append(f"--glob={last}")
    return [*told, f"--iglob=!{asked.forbidden}"]


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
