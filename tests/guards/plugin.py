"""The pytest plugin of a guard's test run: removes by SQL, and records each test's result.

CONTINUITY_TEST_GUARD_SQL holds the statements; each result is a line of JSON in the file that
CONTINUITY_TEST_GUARD_RESULTS names.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session", autouse=True)
def remove_by_sql(django_db_setup: None, django_db_blocker: Any) -> None:
    """Run the statements in the test database before the first test."""
    statement = os.environ.get("CONTINUITY_TEST_GUARD_SQL")
    if not statement:
        return
    from django.db import connection

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        for one in statement.split(";"):
            if one.strip():
                cursor.execute(one)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Append the outcome of a phase that ran the test, or in which it could not run."""
    if report.when == "call" or report.outcome != "passed":
        line = {"test": report.nodeid, "when": report.when, "outcome": report.outcome}
        with Path(os.environ["CONTINUITY_TEST_GUARD_RESULTS"]).open("a") as file:
            file.write(json.dumps(line) + "\n")
