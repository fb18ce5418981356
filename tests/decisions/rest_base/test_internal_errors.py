"""Internal errors: the caller gets an error id, and the log has the details."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any, NoReturn

import httpx
import psycopg.errors
import pytest
from django.db import Error, InternalError, OperationalError
from django.test import RequestFactory
from mcp_types import TextContent

from config.api_errors import server_error
from mcp_server.protocol.results import internal_error_result
from runs.queries import runs
from tests.support.rest.rest import json_of, refusal, submission

SECRET = 'File "/srv/app.py" SELECT * FROM runs_run WHERE password = hunter2'


def failing(error: Exception) -> Callable[..., NoReturn]:
    def fail(*args: Any, **kwargs: Any) -> NoReturn:
        raise error

    return fail


def test_an_internal_error_answers_an_id_that_is_in_the_log(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runs, "get_run", failing(ZeroDivisionError(SECRET)))
    with caplog.at_level(logging.ERROR):
        response = api.get("/api/v1/runs/run_x")
    problem = refusal(response, 500)
    assert problem["errorCode"] == "EXECUTION_ERROR"
    assert "hunter2" not in response.text
    (logged,) = [record for record in caplog.records if hasattr(record, "errorId")]
    assert logged.errorId == problem["details"]["errorId"]
    assert logged.exc_info
    assert str(logged.exc_info[1]) == SECRET


def test_an_internal_error_of_a_waiting_call_answers_the_same_way(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "get_run_row", failing(KeyError(SECRET)))
    response = api.get("/api/v1/runs/run_x/wait")
    assert refusal(response, 500)["details"]["errorId"].startswith("err_")
    assert "hunter2" not in response.text


def of_database(sqlstate: str) -> Error:
    """Return the error that Django raises where PostgreSQL answers with this code."""
    error = InternalError(SECRET)
    error.__cause__ = psycopg.errors.lookup(sqlstate)()
    return error


@pytest.mark.parametrize(
    "error",
    [OperationalError(SECRET), of_database("25006"), of_database("57P01"), of_database("40001")],
)
def test_an_unavailable_database_answers_a_retryable_error(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch, error: Error
) -> None:
    monkeypatch.setattr(runs, "get_run", failing(error))
    response = api.get("/api/v1/runs/run_x")
    problem = refusal(response, 503)
    assert (problem["errorCode"], problem["retryable"]) == ("EXECUTION_ERROR", True)
    assert problem["details"]["causeCode"] == "STORAGE_UNAVAILABLE"
    assert response.headers["retry-after"] == "1"


@pytest.mark.parametrize(
    ("error", "status"), [(of_database("25006"), 503), (ValueError(SECRET), 500)]
)
def test_a_page_of_the_admin_says_whether_to_try_again(
    rf: RequestFactory, error: Exception, status: int
) -> None:
    try:
        raise error
    except (Error, ValueError):
        response = server_error(rf.get("/admin/runs/run/"))
    assert (response.status_code, response.has_header("Retry-After")) == (status, status == 503)
    assert SECRET.encode() not in response.getvalue()


def test_a_tool_answers_a_retryable_error_while_the_database_takes_no_writes() -> None:
    (block,) = internal_error_result("run_task", of_database("25006")).content
    assert isinstance(block, TextContent)
    refused = json.loads(block.text)
    assert (refused["retryable"], refused["details"]["causeCode"]) == (True, "STORAGE_UNAVAILABLE")
    assert SECRET not in block.text


def test_an_internal_error_outside_any_call_answers_the_same_way(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "decisions.rest_base.view.ApiView.initialize_request", failing(ValueError(SECRET))
    )
    response = api.get("/api/v1/runs")
    assert refusal(response, 500)["details"]["errorId"].startswith("err_")
    assert "hunter2" not in response.text


def test_calls_succeed_after_an_internal_error(
    api: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("runs.submission.submit.submit_run", failing(RuntimeError(SECRET)))
        refusal(api.post("/api/v1/runs", json=submission()), 500)
    json_of(api.post("/api/v1/runs", json=submission()), 202)
