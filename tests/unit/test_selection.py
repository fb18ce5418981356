"""What is left out on PostgreSQL is there, and holds nothing that the database decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.selection import ON_SQLITE_ALONE, reason_for_sqlite_alone

TESTS = Path(__file__).parent.parent
# Races, counted statements, plans, constraints, and SQL of the test's own.
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
def test_a_file_that_is_left_to_sqlite_asks_nothing_of_a_database(pattern: str) -> None:
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
def test_of_mcps_transports_one_runs_on_both(params: dict[str, str], left: bool) -> None:
    path = TESTS / "contract/test_new.py"
    assert (reason_for_sqlite_alone(path, params) is not None) == left
