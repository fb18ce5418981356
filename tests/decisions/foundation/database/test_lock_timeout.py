"""Calls wait for locks of PostgreSQL for a limited time."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from django.conf import settings
from django.db import connection, transaction

from tests.support.rest.rest import json_of, refusal, submission
from tests.support.rest.rest_server import close_pooled_connections

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has its own limit, `timeout`"
)


@pytest.fixture
def short_timeout(web: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the server's threads open new connections, with a limit of 200 ms."""
    with monkeypatch.context() as short:
        short.setattr(settings, "DATABASE_LOCK_TIMEOUT_MS", 200)
        close_pooled_connections()
        yield
    close_pooled_connections()


@pytest.mark.usefixtures("short_timeout")
def test_a_call_answers_503_if_a_lock_is_not_released_in_time(api: httpx.Client) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE runs_run")
        response = api.post("/api/v1/runs", json=submission(), timeout=5)
    problem = refusal(response, 503)
    assert problem["message"] == "A lock in the database was not released in time."
    assert problem["retryable"] is True
    assert response.headers["retry-after"] == "1"
    json_of(api.post("/api/v1/runs", json=submission()), 202)
