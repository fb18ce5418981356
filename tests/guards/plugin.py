"""The pytest plugin of a guard's test run: removes by SQL, and records each test's result.

The database is empty before the test, and after it if the teardown passes.

CONTINUITY_TEST_GUARD_SQL holds the statements, empty for a removal in code; if it is not set, the
tests run unchanged, in a database that they migrate. Each result is a line of JSON in the file that
CONTINUITY_TEST_GUARD_RESULTS names. CONTINUITY_TEST_GUARD_MODULES names the file for the names of
the third-party modules that the tests have imported.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

NOT_PRELOADED = ("pytest_", "_pytest", "xdist", "execnet", "_hypothesis")


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Use the test database that exists, without migrations."""
    if "CONTINUITY_TEST_GUARD_SQL" not in os.environ:
        return
    import django.test.utils
    from django.db import connection

    def use_existing(*_: Any, **__: Any) -> list[Any]:
        creation: Any = connection.creation
        connection.settings_dict["NAME"] = creation._get_test_db_name()
        return []

    django.test.utils.setup_databases = use_existing


@pytest.fixture(scope="session", autouse=True)
def remove_by_sql(
    django_db_setup: None, django_db_blocker: Any, request: pytest.FixtureRequest
) -> None:
    """Run the statements in the test database before the first test."""
    statements = os.environ.get("CONTINUITY_TEST_GUARD_SQL")
    commits = any(
        "transactional_db" in getattr(item, "fixturenames", ()) for item in request.session.items
    )
    if statements is None or not (statements or commits):
        return
    from django.db import connection

    from tests.emptying import remember_standing_rows

    with django_db_blocker.unblock(), connection.cursor() as cursor:
        remember_standing_rows()
        if not statements:
            return
        if connection.vendor == "sqlite":
            cursor.executescript(statements)
        else:
            cursor.execute(statements)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Append the outcome of a phase, except of a set-up that passed."""
    if report.when != "setup" or report.outcome != "passed":
        crash = getattr(report.longrepr, "reprcrash", None)
        line = {
            "test": report.nodeid,
            "when": report.when,
            "outcome": report.outcome,
            "message": crash.message.splitlines()[0] if crash and crash.message else "",
        }
        with Path(os.environ["CONTINUITY_TEST_GUARD_RESULTS"]).open("a") as file:
            file.write(json.dumps(line) + "\n")


def pytest_sessionfinish() -> None:
    """Write the names of the third-party modules that are loaded."""
    path = os.environ.get("CONTINUITY_TEST_GUARD_MODULES")
    if not path or os.environ.get("PYTEST_XDIST_WORKER") != "gw0":
        return
    names = [
        name
        for name, module in list(sys.modules.items())
        if "site-packages" in (getattr(module, "__file__", None) or "")
        and not name.startswith(NOT_PRELOADED)
    ]
    Path(path).write_text(json.dumps(names))
