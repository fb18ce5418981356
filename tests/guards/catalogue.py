"""All guards, by part of the product: read from the text file of each part.

    [runs/lifecycle/lease.py]
    lease-epoch in Lease.guard: drop 'epoch': ...
        test_an_old_lease_writes_nothing[step] # A worker writes while it has the lease

The section names the file; then each guard has its name, the place in the file, the mutation (see
`mutation.py`), and below it, indented, the test that must fail, and after ` # ` what holds. A long
line goes on in the next one, indented. An indented line `+ in PLACE: MUTATION` adds a mutation, and
`+ FILE in PLACE: MUTATION` one of another file. In the section `[database]` the mutation is SQL;
`[postgresql]` and `[sqlite]` are for one database only. `on sqlite` after a test runs the guard
there. Rows above one test share it.

A test is found by its function's name; where two files have the same, as `FILE_STEM::test_…`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.guards.guard import Guard
from tests.guards.mutation import Mutation, StaleMutation

PARTS = ("config", "decisions", "artifacts", "runners", "runs", "mcp_server", "database")
ROOT = Path(__file__).parents[2]
_DATABASES = {
    "database": ("postgresql", "sqlite"),
    "postgresql": ("postgresql",),
    "sqlite": ("sqlite",),
}
_ROW = re.compile(r"(?P<name>[\w-]+)(?: in (?P<place>[\w.]+))?: (?P<text>.+)")
_MORE = re.compile(r"\+ ?(?P<file>[\w./]+)?(?: ?in (?P<place>[\w.]+))?: (?P<text>.+)")
_TEST = re.compile(r"(?P<id>.+?)(?P<database> on sqlite)?(?: # (?P<promise>.+))?")
_TEST_BELOW = re.compile(r"\n +(?=(?:[\w/.]+::)?test_)")
_FUNCTION = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


class UnreadableRow(Exception):
    """A row of a catalogue has another form."""


def guards_by_part() -> dict[str, tuple[Guard, ...]]:
    """Return the guards of each part."""
    return {part: tuple(read(Path(__file__).with_name(f"{part}.txt"))) for part in PARTS}


def problems(guards: Iterable[Guard]) -> list[str]:
    """Return each test that is not found, and each mutation that does not fit."""
    trees: dict[str, ast.Module] = {}
    found = []
    for guard in guards:
        if not guard.failing_test.startswith("tests/"):
            found.append(f"{guard.name}: not exactly one file has the test {guard.failing_test}")
        for mutation in guard.mutations:
            try:
                mutation.check(ROOT, trees)
            except (StaleMutation, OSError) as problem:
                found.append(f"{guard.name}: {problem}")
    return found


def read(path: Path) -> Iterator[Guard]:
    """Yield the guards of a catalogue."""
    section, untested = "", list[str]()
    for block in re.split(r"\n(?=\S)", path.read_text().strip()):
        if block.startswith("["):
            section = block.strip("[]")
            continue
        removal, _, test = _TEST_BELOW.sub("\0", block, count=1).partition("\0")
        untested.append(removal)
        if test:
            yield from (guard_of(section, removal, _joined(test)) for removal in untested)
            untested = []
    if untested:
        raise UnreadableRow(f"{path.name}: there is no test below {untested[0]}")


def guard_of(section: str, removal: str, test: str) -> Guard:
    """Return the guard of a row and its test."""
    first, *more = re.split(r"\n +(?=\+)", removal)
    rows = [_ROW.fullmatch(_joined(first)), *(_MORE.fullmatch(_joined(line)) for line in more)]
    about = _TEST.fullmatch(test)
    if about is None or not all(rows):
        raise UnreadableRow(f"[{section}] {removal} {test}")
    found = [row.groupdict() for row in rows if row]
    mutations = [
        Mutation(row.get("file") or section, row["place"] or "", row["text"]) for row in found
    ]
    statements = {name: each.text for each in mutations for name in _DATABASES.get(each.file, ())}
    return Guard(
        found[0]["name"],
        id_of(about["id"]),
        tuple(statements) or ("sqlite" if about["database"] else "postgresql",),
        () if statements else tuple(mutations),
        statements,
        about["promise"] or "",
    )


def _joined(lines: str) -> str:
    return re.sub(r"\n +", " ", lines)


def id_of(named: str) -> str:
    """Return the id of the test of this name; the name itself unless one file has it."""
    file, _, test = named.partition("[")[0].rpartition("::")
    found = [path for path in _files_of_tests().get(test, []) if file in ("", path.stem)]
    if len(found) != 1:
        return named
    return f"{found[0].as_posix()}::{named.removeprefix(f'{file}::')}"


@cache
def _files_of_tests() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name in _FUNCTION.findall(path.read_text()):
            found.setdefault(name, []).append(path.relative_to(ROOT))
    return found
