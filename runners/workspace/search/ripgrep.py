"""Ask ripgrep which files may hold a match.

It is asked for names alone. What is handed out is read by us, through the sandbox: a link that is
swapped in while ripgrep walks makes it look elsewhere, but nothing of what it sees there comes out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import cache

from runners.workspace.errors import TooSlow

_ARGUMENT_BYTES = 500_000
# Nothing of the caller's own settings, no ignore files; binary files are left at their first NUL.
_ALWAYS = (
    "--no-config", "--no-ignore", "--hidden", "--no-follow", "--no-messages", "--color=never",
    "--no-mmap", "--max-depth=1", "--files-with-matches", "--null",
)  # fmt: skip


class RipgrepFailed(Exception):
    """It is not there, or does not take the expression."""


@cache
def find_ripgrep() -> str | None:
    """Return where ripgrep is, None where it is not installed."""
    return shutil.which("rg")


def files_with_matches(
    folder: int,
    below: Sequence[str],
    expression: str,
    *,
    file_glob: str | None,
    forbidden: Sequence[str],
    limit: int,
    until: float,
) -> list[str]:
    """Return the files directly in some folders that may hold a line that matches.

    Args:
        folder: an open folder.
        below: folders relative to it, each with a slash at its end, "" for itself.
        file_glob: the last name of it spares files of other names.
        forbidden: names of files that are not looked at.
        limit: larger files are left out; bytes.
        until: `time.monotonic()` value after which ripgrep is killed.

    Raises:
        RipgrepFailed: Search without it.
        TooSlow: It was killed.
    """
    command = [find_ripgrep() or "", *_ALWAYS, f"--max-filesize={limit}"]
    command += [*_globs(file_glob, forbidden), "-e", expression, "--"]
    told = []
    for some in _pieces([f"./{one}" for one in below]):
        ran = _run([*command, *some], folder, until)
        # 2 with nothing said is a file that could not be read, which is left out like any other.
        if ran.returncode not in {0, 1, 2} or ran.stderr.strip():
            raise RipgrepFailed(ran.stderr.decode(errors="replace")[:500])
        told += [os.fsdecode(name).removeprefix("./") for name in ran.stdout.split(b"\0") if name]
    return told


def _globs(file_glob: str | None, forbidden: Sequence[str]) -> list[str]:
    """Return what spares ripgrep a look; whatever it tells is judged again."""
    told = []
    last = (file_glob or "").rpartition("/")[2]
    if last != "**" and re.fullmatch(r"[\w.*?-]+", last):
        told.append(f"--glob={last}")
    for name in forbidden:
        if re.fullmatch(r"[\w.-]+", name):
            told.append(f"--iglob=!{name}")
    if ".env" in map(str.lower, forbidden):  # the one that forbids names with endings as well
        told.append("--iglob=!.env.*")
    return told


def _pieces(arguments: Sequence[str]) -> Iterator[list[str]]:
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


def _run(command: Sequence[str], folder: int, until: float) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command,
            # The folder that is open, whatever has been put in its place meanwhile.
            cwd=f"/proc/self/fd/{folder}",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=max(0.0, until - time.monotonic()),
            check=False,
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired:
        raise TooSlow("The search did not end in time; name a folder further down.") from None
    except OSError as exc:
        raise RipgrepFailed(str(exc)) from None
