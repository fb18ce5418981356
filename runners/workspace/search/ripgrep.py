"""Run ripgrep to find the lines that may match.

ripgrep reports only the positions of lines; their content is then read through the sandbox. So if a
link is swapped in while ripgrep walks, it may read outside of the root, but no content from there
is ever returned.
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

from runners.child_environment import child_environment
from runners.workspace.errors import WorkspaceTimeout

_ARGUMENT_BYTES = 500_000
_BATCH = 64  # files that are yielded together, to reduce the overhead per file
# Matching lines that ripgrep reports per file; beyond it, searching all lines is as fast.
_MAX_LINES_PER_FILE = 20
# No configuration or ignore files of the user; a binary file is searched up to its first NUL.
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
    f"--max-count={_MAX_LINES_PER_FILE}",
)
_LINE = re.compile(rb"([^\0]+)\0([0-9]+):[^\n]*\n")  # "./a.txt\0" "123:" "[Omitted long line]"
# The warning after the lines of a file that turns out to be binary; its name precedes it.
_BINARY = re.compile(rb": WARNING: stopped searching binary file after match [^\n]*\n")
_PIPE_BYTES = 1 << 20
_NAME_BYTES = 1 << 16  # output of this size without a line cannot be ripgrep's

# Start offsets of the lines that may match, by path: in bytes from the start of the text (without a
# BOM), or None for all lines of the file.
CandidateLines = dict[str, list[int] | None]


class RipgrepFailed(Exception):
    """ripgrep is missing, rejects the expression, or its output cannot be parsed."""


class RipgrepQuery(NamedTuple):
    """What ripgrep searches for, and where.

    Attributes:
        folder: descriptor of an open folder.
        expression: in ripgrep's dialect.
        file_glob: only its last component is used, to skip files by name.
        forbidden: a glob of names that are skipped.
        max_file_bytes: larger files are skipped.
        deadline: `time.monotonic()` value at which ripgrep is killed.
    """

    folder: int
    expression: str
    file_glob: str | None
    forbidden: str
    max_file_bytes: int
    deadline: float


@cache
def find_ripgrep() -> str | None:
    """Return the path of ripgrep, None if it is not installed."""
    return shutil.which("rg")


def candidate_lines_in(folders: Sequence[str], query: RipgrepQuery) -> Generator[CandidateLines]:
    """Yield the lines that may match in files directly in the given folders.

    Each file appears once; the order is undefined.

    Args:
        folders: relative to the open folder, with a slash at the end; "" is the open folder itself.

    Raises:
        RipgrepFailed: The lines yielded so far may be incomplete; search without ripgrep.
        WorkspaceTimeout: The deadline has passed; ripgrep was killed.
    """
    for batch in _command_line_batches([f"./{folder}" for folder in folders]):
        yield from _run(["--max-depth=1"], batch, query)


def candidate_lines_below(query: RipgrepQuery) -> Generator[CandidateLines]:
    """Yield the lines that may match in all files below the open folder.

    Order and errors are those of `candidate_lines_in`.
    """
    yield from _run([], ["./"], query)


def _run(
    depth: Sequence[str], folders: Sequence[str], query: RipgrepQuery
) -> Generator[CandidateLines]:
    command = [find_ripgrep() or "", *_ALWAYS, *depth, f"--max-filesize={query.max_file_bytes}"]
    command += [*_globs(query), "-e", query.expression, "--", *folders]
    with _start(command, query.folder) as process:
        try:
            if process.stdout is not None:
                _enlarge_pipe(process.stdout.fileno())
                yield from _batches_by_file(_read_chunks(process.stdout.fileno(), query.deadline))
            message = process.communicate()[1]
        finally:
            process.kill()
    # Status 2 without a message is a file that could not be read; it is skipped.
    if process.returncode not in {0, 1, 2} or message.strip():
        raise RipgrepFailed(message.decode(errors="replace")[:500])


def _read_chunks(pipe: int, deadline: float) -> Generator[bytes]:
    """Yield data from a pipe until it is closed."""
    ready = select.poll()
    ready.register(pipe)
    data = b"-"
    while data:
        if not ready.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise WorkspaceTimeout("The search did not finish in time; name a folder further down.")
        data = os.read(pipe, _PIPE_BYTES)
        yield data


def _enlarge_pipe(pipe: int) -> None:
    """Enlarge the pipe, so that ripgrep continues while this process searches its candidates."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):  # the user's limit on pipe memory may be reached
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _batches_by_file(output: Iterable[bytes]) -> Generator[CandidateLines]:
    """Yield ripgrep's output in batches of files; the lines of one file come in sequence."""
    rest, last = b"", b""
    offsets: dict[bytes, list[int]] = {}
    for data in output:
        rest, last = _read_lines(rest + data, last, offsets)
        if len(offsets) > _BATCH:
            unfinished = offsets.pop(last)
            yield _candidate_lines(offsets)
            offsets = {last: unfinished}
    if rest:
        raise RipgrepFailed("ripgrep's output ends within a line.")
    yield _candidate_lines(offsets)


def _read_lines(data: bytes, last: bytes, offsets: dict[bytes, list[int]]) -> tuple[bytes, bytes]:
    """Add all complete lines; return the unparsed rest, and the name of the last file."""
    at = 0
    while at < len(data):
        if last and data.startswith(last, at) and (message := _BINARY.match(data, at + len(last))):
            at = message.end()
            continue
        line = _LINE.match(data, at)
        if line is None:
            break
        last, at = line[1], line.end()
        offsets.setdefault(last, []).append(int(line[2]))
    if len(data) - at > _NAME_BYTES:
        raise RipgrepFailed("ripgrep's output has no line in the expected format.")
    return data[at:], last


def _candidate_lines(offsets: dict[bytes, list[int]]) -> CandidateLines:
    if any(b"\n" in name for name in offsets):
        raise RipgrepFailed("ripgrep's output has a file name with a line break, or is unknown.")
    return {
        os.fsdecode(name).removeprefix("./"): lines if len(lines) < _MAX_LINES_PER_FILE else None
        for name, lines in offsets.items()
    }


def _globs(query: RipgrepQuery) -> list[str]:
    """Return globs that let ripgrep skip files; its results are filtered again."""
    globs = []
    last = (query.file_glob or "").rpartition("/")[2]
    if last != "**" and re.fullmatch(r"[\w.*?-]+", last):
        globs.append(f"--glob={last}")
    return [*globs, f"--iglob=!{query.forbidden}"]


def _command_line_batches(arguments: Sequence[str]) -> Generator[list[str]]:
    """Yield the arguments in batches that fit on one command line."""
    batch, size = [], 0
    for argument in arguments:
        batch.append(argument)
        size += len(os.fsencode(argument)) + 9
        if size > _ARGUMENT_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _start(command: Sequence[str], folder: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            # The open folder itself, even if its path was replaced meanwhile.
            cwd=f"/proc/self/fd/{folder}",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=child_environment(LC_ALL="C.UTF-8"),
        )
    except OSError as exc:
        raise RipgrepFailed(str(exc)) from None
