"""Every file of the product with code for one database has tests that also run on SQLite."""

from __future__ import annotations

import re
from fnmatch import fnmatch

import pytest

from tests.selection import ALSO, FAST, ROOT, VENDOR, runs_on_sqlite

APPS = ("config", "decisions", "artifacts", "runners", "runs", "mcp_server")
SQL_OF_ONE_DATABASE = re.compile(
    r"\.vendor\b|\bvendor ==|RunSQL|sqlite3\.|from django\.db\.backends|sqlite_master|pg_"
)


def test_each_file_with_code_for_one_database_is_listed() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for app in APPS
        for path in (ROOT / app).rglob("*.py")
        if SQL_OF_ONE_DATABASE.search(path.read_text())
    }
    missing = [
        name for name in sorted(found) if not any(fnmatch(name, pattern) for pattern in VENDOR)
    ]
    assert missing == []


@pytest.mark.parametrize("pattern", VENDOR)
def test_each_listed_file_exists(pattern: str) -> None:
    assert list(ROOT.glob(pattern))


@pytest.mark.parametrize(
    "pattern", sorted({one for patterns in VENDOR.values() for one in patterns} | {*ALSO, *FAST})
)
def test_each_pattern_names_tests(pattern: str) -> None:
    assert [path for path in (ROOT / "tests").glob(pattern) if path.name.startswith("test_")]


def test_a_file_that_is_not_listed_runs_on_postgresql_alone() -> None:
    assert not runs_on_sqlite(ROOT / "tests/runs/agent/test_new.py")
    assert runs_on_sqlite(ROOT / "tests/runs/queue/test_new.py")
