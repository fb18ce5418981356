"""The tests that do not run on PostgreSQL exist, and none of them depends on the database."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.selection import ON_SQLITE_ALONE, reason_for_sqlite_alone

TESTS = Path(__file__).parent.parent
# Signs of races, counted statements, plans, constraints, and SQL in a test.
DATABASES_OWN = (
    "racing",
    "CaptureQueries",
    "num_queries",
    "explain(",
    "EXPLAIN",
    "IntegrityError",
    "select_for_update",
    ".cursor()",
    "connection.vendor",
)


@pytest.mark.parametrize("pattern", ON_SQLITE_ALONE)
def test_a_file_that_runs_only_on_sqlite_does_not_depend_on_the_database(pattern: str) -> None:
    files = sorted(TESTS.glob(pattern))
    assert files
    texts = {path.name: path.read_text() for path in files}
    found = [(name, word) for name, text in texts.items() for word in DATABASES_OWN if word in text]
    assert found == []


def test_a_new_file_runs_on_both() -> None:
    assert reason_for_sqlite_alone(TESTS / "integration/test_new.py", {}) is None


@pytest.mark.parametrize(
    ("params", "left"),
    [
        ({"host": "http"}, False),
        ({"host": "stdio"}, True),
        ({"remote_host": "sse"}, True),
        ({"door": "mcp"}, False),
        ({"row": "stdio"}, False),
    ],
)
def test_one_of_the_mcp_transports_runs_on_both(params: dict[str, str], left: bool) -> None:
    path = TESTS / "contract/test_new.py"
    assert (reason_for_sqlite_alone(path, params) is not None) == left
