"""The guards fit the code and the tests as they are, so that `make guards` can run them."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tests.guards.catalogue import PARTS, guard_of, guards_by_part, problems
from tests.guards.mutation import Mutation, StaleMutation
from tests.selection import runs_on_sqlite

ROOT = Path(__file__).parents[2]
GUARDS = [guard for guards in guards_by_part().values() for guard in guards]
CODE = '''
class Queue:
    @atomic
    def take(self, run, *, epoch):
        """Take a run."""
        with lock(run):  # one at a time
            rows = self.rows.filter(id=run.id, epoch=epoch).exclude(done=True)
        if run.is_over and not run.waits or rows is None:
            raise Refused("AND epoch = %s")
        return {"id": run.id, **self.owner}
'''


def test_there_are_guards_for_each_part_and_each_has_its_own_name() -> None:
    assert all(len(guards_by_part()[part]) >= 30 for part in PARTS)
    names = Counter(guard.name for guard in GUARDS)
    assert [name for name, count in names.items() if count > 1] == []


def test_each_guard_fits() -> None:
    assert problems(GUARDS) == []


def test_no_line_of_a_catalogue_is_too_long() -> None:
    for path in (ROOT / "tests" / "guards").glob("*.txt"):
        lines = path.read_text().splitlines()
        assert [line for line in lines if len(line) > 100 and " " in line.strip()] == [], path


@pytest.mark.parametrize(
    ("mutation", "old", "new"),
    [
        ("drop epoch=...", ", epoch=epoch)", ")"),
        ("drop .exclude(...)", ".exclude(done=True)", ""),
        ("drop atomic", "@atomic", ""),
        ("drop not run.waits", " and not run.waits", ""),
        ("drop **self.owner", ", **self.owner", ""),
        ("drop 'id': ...", '"id": run.id, ', ""),
        ("run.is_over and ... -> False", "run.is_over and not run.waits", "False"),
        ("raise Refused(...) -> pass", 'raise Refused("AND epoch = %s")', "pass"),
        ("'AND epoch = %s' ~> ''", "AND epoch = %s", ""),
        ("unwrap with lock(run): ...", "with lock(run):", "if True:"),
        ("drop raise ...", 'raise Refused("AND epoch = %s")', "pass"),
    ],
)
def test_a_mutation_changes_what_it_names(mutation: str, old: str, new: str) -> None:
    found = Mutation("queue.py", "Queue.take", mutation).applied(CODE)
    assert Counter(CODE)[old] <= 1
    assert _plain(found) == _plain(CODE.replace(old, new))


@pytest.mark.parametrize("mutation", ["run -> None", "drop other(...)", "drop rows"])
def test_a_mutation_that_does_not_match_exactly_once_is_stale(mutation: str) -> None:
    with pytest.raises(StaleMutation, match=r"queue.py in Queue.take: .* matches \d+ times"):
        Mutation("queue.py", "Queue.take", mutation).applied(CODE)


def test_a_row_names_place_mutations_test_and_promise() -> None:
    row = "name in Class.method: drop\n      a()\n    + b.py: x -> y"
    guard = guard_of("a.py", row, "test_each_guard_fits # It holds")
    assert guard.mutations == (
        Mutation("a.py", "Class.method", "drop a()"),
        Mutation("b.py", "", "x -> y"),
    )
    own_id = f"{Path(__file__).relative_to(ROOT)}::test_each_guard_fits"
    assert (guard.failing_test, guard.promise) == (own_id, "It holds")


def test_each_test_that_must_fail_is_in_make_test(request: pytest.FixtureRequest) -> None:
    config = request.config
    if config.option.keyword or any("::" in argument for argument in config.args):
        pytest.skip("files are selected in part")
    run = {item.nodeid for item in request.session.items}
    files = {nodeid.partition("::")[0] for nodeid in run}
    named = {guard.failing_test for guard in GUARDS}
    assert (
        sorted(test for test in named if test.partition("::")[0] in files and test not in run) == []
    )


def test_each_test_that_must_fail_on_sqlite_runs_there() -> None:
    on_sqlite = {guard.failing_test for guard in GUARDS if "sqlite" in guard.databases}
    files = {test.partition("::")[0] for test in on_sqlite}
    assert [file for file in files if not runs_on_sqlite(ROOT / file)] == []


def _plain(text: str) -> str:
    """Return a code's tree as text, without statements that do nothing."""
    lines = ast.unparse(ast.parse(text)).splitlines()
    return "\n".join(line.strip() for line in lines if line.strip() not in ("pass", "if True:"))
