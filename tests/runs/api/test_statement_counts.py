"""The number of database statements of a call, authentication included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.db.backends.utils import CursorWrapper

from runs.models import Run
from tests.support.rest.rest import submission

pytest_plugins = ["tests.support.rest.rest_fixtures"]
_NO_QUERY = ("BEGIN", "SELECT 1", "SAVEPOINT", "RELEASE", "PRAGMA", "SET ")


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements of all threads, except transaction control and connection set-up."""
    seen: list[str] = []
    for name in ("execute", "executemany"):
        original = getattr(CursorWrapper, name)

        def watched(self: Any, sql: Any, *args: Any, original: Any = original) -> Any:
            if not str(sql).startswith(_NO_QUERY) or str(sql).startswith("SELECT 1 AS"):
                seen.append(str(sql))
            return original(self, sql, *args)

        monkeypatch.setattr(CursorWrapper, name, watched)
    return seen


def test_reading_a_run_takes_three_statements(
    api: httpx.Client, make_run: Callable[..., Run], statements: list[str]
) -> None:
    run = make_run(status="succeeded", result={})
    statements.clear()
    assert api.get(f"/api/v1/runs/{run.id}").is_success
    assert len(statements) <= 3, statements


@pytest.mark.parametrize("count", [1, 20])
def test_a_list_takes_four_statements_however_long_it_is(
    api: httpx.Client,
    make_run: Callable[..., Run],
    make_artifact: Callable[..., str],
    statements: list[str],
    count: int,
) -> None:
    for _ in range(count):
        make_artifact(b"x", run_id=make_run(status="succeeded", result={}).id)
    statements.clear()
    assert len(api.get("/api/v1/runs").json()["runs"]) == count
    # The token, the count (read from totals), the page, and its artifacts.
    assert len(statements) <= 4, statements


def test_a_submit_takes_at_most_ten_statements(api: httpx.Client, statements: list[str]) -> None:
    statements.clear()
    assert api.post("/api/v1/runs", json=submission(idempotencyKey="k")).is_success
    assert len(statements) <= 10, statements


def test_a_chunk_takes_two_statements(
    api: httpx.Client, make_artifact: Callable[..., str], statements: list[str]
) -> None:
    artifact_id = make_artifact(b"x")
    statements.clear()
    assert api.get(f"/api/v1/artifacts/{artifact_id}").is_success
    assert len(statements) <= 2, statements


def test_a_refused_token_takes_one_statement(
    anonymous: httpx.Client, principal: object, statements: list[str]
) -> None:
    bad = {"Authorization": "Bearer cty_unknown"}
    anonymous.get("/api/v1/runs", headers=bad)  # the first one of a minute writes an audit row
    statements.clear()
    assert anonymous.get("/api/v1/runs", headers=bad).status_code == 401
    assert len(statements) <= 1, statements
