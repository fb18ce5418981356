"""Run the tests in parts, each on the database that it is for: `make test`.

    python -m tests [quick | all] [ARGUMENT OF PYTEST …]

Without a word: all tests on PostgreSQL but those marked `slow`, then on SQLite those that
tests/selection.py lists. `all` adds the slow ones; `quick` runs a part of the tests that takes
about a minute. The exit code is 0 if tests ran and none failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.programs import ProgramMissing, describe_programs
from tests.progress import minutes
from tests.selection import ON_SQLITE, QUICK

ROOT = Path(__file__).parent.parent
OK = pytest.ExitCode.OK
OPTIONS = ("-q", "-p", "tests.progress", "-n", "4", "--dist", "worksteal")


@dataclass(frozen=True)
class Part:
    """Tests that run together on one database."""

    name: str
    database: str
    arguments: tuple[str, ...] = ()


PARTS = {
    "": (
        Part("PostgreSQL", "postgresql"),
        Part("SQLite", "sqlite", (ON_SQLITE,)),
    ),
    "all": (
        Part("PostgreSQL", "postgresql", ("-m", "not soak")),
        Part("SQLite", "sqlite", (ON_SQLITE, "-m", "not soak")),
    ),
    "quick": (Part("quick", "postgresql", (QUICK,)),),
}


def main(arguments: Sequence[str]) -> int:
    """Run the parts; print what passed where, and how long it took."""
    word = arguments[0] if arguments and arguments[0] in PARTS else ""
    more = arguments[1:] if word else arguments
    try:
        print(describe_programs(), flush=True)  # noqa: T201
    except ProgramMissing as error:
        print(error, flush=True)  # noqa: T201
        return 1
    began = time.monotonic()
    lines, codes = [], []
    for part in PARTS[word]:
        code, line = run_part(part, more)
        codes.append(code)
        lines.append(line)
        if code == pytest.ExitCode.INTERRUPTED:
            break
    passed = has_passed(codes)
    print(  # noqa: T201
        "",
        *lines,
        f"{'all':10} {'passed' if passed else 'FAILED'} in {minutes(time.monotonic() - began)}",
        sep="\n",
        flush=True,
    )
    return 0 if passed else 1


def has_passed(codes: Sequence[int]) -> bool:
    """Return whether a part passed and none failed; a part may have none of the chosen tests."""
    return OK in codes and {*codes} <= {OK, pytest.ExitCode.NO_TESTS_COLLECTED}


def run_part(part: Part, more: Sequence[str]) -> tuple[int, str]:
    """Run one part; return pytest's exit code and the part's line of the summary."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts.json"
        environment = {
            **os.environ,
            "CONTINUITY_TEST_DATABASE": part.database,
            "CONTINUITY_TEST_PART": part.name,
            "CONTINUITY_TEST_COUNTS": str(counts),
        }
        command = [sys.executable, "-m", "pytest", *OPTIONS, *part.arguments, *more]
        with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
            try:
                code = process.wait()
            except KeyboardInterrupt:  # pytest got it, too, and stops its servers before it exits
                process.wait()
                code = pytest.ExitCode.INTERRUPTED
        found = json.loads(counts.read_text()) if counts.exists() else {}
    shown = ", ".join(f"{number} {word}" for word, number in found.items() if number)
    return code, f"{part.name:10} {shown or 'no result'} in {minutes(time.monotonic() - began)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
