"""Test that every row of bad inputs gets its code over REST, in the common error shape."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.db.models import F

from decisions.models import AuditEntry
from runs.models import Run
from tests.contract.bad_inputs import Row, encode, in_samples, rows
from tests.contract.egress_rows import (
    FixturesSite,
    check_item,
    fixtures_site,  # noqa: F401  (a fixture)
    is_about_egress,
)
from tests.contract.rest_calls import (
    reason_not_sendable,
    request_of,
    rest_rows,
    send,
    send_raw_request,
)
from tests.contract.test_mcp_bad_inputs import existing_objects  # noqa: F401  (a fixture)
from tests.support.rest.rest import code_of, json_of

LEFT_OUT = {"login_keep_session": "test_login_rows.py sends them"}
OBJECTS = ("run_ok", "run_canceled", "run_expired", "run_of", "run_running", "art_", "sess_")
STATUS_OF = {
    "OK": {200, 202},
    "INVALID_PARAMETER": {400, 413, 416},
    "NOT_FOUND": {404},
    "RUN_NOT_FOUND": {404},
    "TASK_NOT_FOUND": {404},
    "ARTIFACT_NOT_FOUND": {404},
    "ARTIFACT_EXPIRED": {410},
    "METHOD_NOT_ALLOWED": {405},
}
ALL = rows("mcp+rest:runs")


def reason_left_out(row: Row) -> str | None:
    """Return why a row is not for REST or not sent by these tests; None for a row to run."""
    text = str(row.input)
    listed = next((reason for substring, reason in LEFT_OUT.items() if substring in text), None)
    if listed is not None:
        return listed
    several = {"$sequence", "$parallel", "$headers", "$raw_body", "$raw_hex"} & set(row.input)
    return None if several else reason_not_sendable(row)


SENT = [row for row in ALL if reason_left_out(row) is None]


def is_single(row: Row) -> bool:
    return not {"$sequence", "$parallel"} & set(row.input)


def waits(row: Row) -> bool:
    """Return whether the answer waits for the run's end, so that the test needs a worker."""
    options = row.input.get("options", {})
    ends_in_run = row.expect_code.partition(":")[0] in {"OK", "item"}
    return (
        row.tool == "run_task_template"
        and ends_in_run
        and isinstance(options, dict)
        and options.get("mode") != "async"
    )


EGRESS = [row for row in SENT if is_about_egress(row)]
REMOTE = [row for row in SENT if row.is_remote]
LOCAL = [row for row in SENT if not row.is_remote and not is_about_egress(row)]
WAITING = [row for row in LOCAL if is_single(row) and waits(row)]
NOT_WAITING = [row for row in LOCAL if is_single(row) and not waits(row)]
WITH_OBJECTS = [row for row in NOT_WAITING if any(name in str(row.input) for name in OBJECTS)]
WITHOUT_OBJECTS = [row for row in NOT_WAITING if row not in WITH_OBJECTS]
MULTI_CALL = [row for row in SENT if not is_single(row)]


def check(response: httpx.Response, expected: str) -> None:
    if expected.startswith("HTTP_"):
        code_of(response)
        assert response.status_code == int(expected.removeprefix("HTTP_"))
    else:
        assert code_of(response) == expected
        assert response.status_code in STATUS_OF.get(expected, {400})
    assert len(response.content) < 5000 or response.is_success


def test_every_row_is_run_or_has_its_reason() -> None:
    sent = len(NOT_WAITING) + len(WAITING) + len(REMOTE) + len(EGRESS) + len(MULTI_CALL)
    left_out = [row for row in ALL if reason_left_out(row)]
    assert sent + len(left_out) == len(ALL)
    assert len([row for row in left_out if row.source.startswith("shared")]) <= 8


@pytest.mark.parametrize("row", in_samples(WITHOUT_OBJECTS, each=10))
def test_a_bad_input_gets_its_code(api: httpx.Client, row: Row) -> None:
    check(send(api, row), row.expect_code)


@pytest.mark.usefixtures("existing_objects")
@pytest.mark.parametrize("row", WITH_OBJECTS, ids=str)
def test_a_call_about_an_existing_object_gets_its_code(api: httpx.Client, row: Row) -> None:
    check(send(api, row), row.expect_code)


@pytest.mark.usefixtures("existing_objects")
@pytest.mark.parametrize("row", rest_rows("rest:call"), ids=str)
def test_a_call_that_only_http_can_express_gets_its_code(api: httpx.Client, row: Row) -> None:
    check(send_raw_request(api, row), row.expect_code)


@pytest.mark.usefixtures("background_worker")
@pytest.mark.parametrize("row", WAITING, ids=str)
def test_a_sync_run_ends_with_the_code_of_its_item(api: httpx.Client, row: Row) -> None:
    run = json_of(send(api, row))
    assert run["status"] == "failed"
    if row.expect_code != "OK":
        expected_code = row.expect_code.removeprefix("item:")
        assert run["error"]["errorCode"] == expected_code
        assert run["error"]["details"]["items"][0]["error"]["errorCode"] == expected_code


@pytest.mark.usefixtures("background_worker")
@pytest.mark.parametrize("row", REMOTE, ids=str)
def test_a_remote_callers_item_gets_its_code(
    client_with: Callable[..., httpx.Client], row: Row
) -> None:
    check_item(row, json_of(send(client_with(trust="remote"), row)))


@pytest.mark.usefixtures("background_worker")
@pytest.mark.parametrize("row", EGRESS, ids=str)
def test_a_remote_callers_page_cannot_reach_a_forbidden_address(
    client_with: Callable[..., httpx.Client],
    fixtures_site: FixturesSite,  # noqa: F811
    row: Row,
) -> None:
    answer = send(client_with(trust="remote"), fixtures_site.with_port(row))
    fixtures_site.check(row, json_of(answer))


def advance(milliseconds: int) -> None:
    """Make every run older by this many milliseconds."""
    age = timedelta(milliseconds=milliseconds)
    Run.objects.update(created_at=F("created_at") - age, ended_at=F("ended_at") - age)


def send_sequence(api: httpx.Client, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send the calls of a sequence and return their answers."""
    answers: list[dict[str, Any]] = []
    for step in steps:
        if "$advance_ms" in step:
            advance(step["$advance_ms"])
            continue
        if "$cancel_while" in step:
            Run.objects.update(status=step["$cancel_while"])
            call = request_of("cancel_task_run", {"runId": answers[-1]["runId"]})
        elif "$get" in step:
            call = request_of("get_task_run", {"runId": answers[-1]["runId"]})
        else:
            call = request_of("run_task_template", step)
        response = api.request(**call)
        assert response.is_success, response.text
        answers.append(response.json())
    return answers


def sequences(directive: str) -> list[Row]:
    return [row for row in MULTI_CALL if directive in str(row.input.get("$sequence"))]


@pytest.mark.parametrize("row", sequences("$cancel_while"), ids=str)
def test_a_canceled_run_reports_who_canceled_it_and_when(api: httpx.Client, row: Row) -> None:
    _, cancel, run = send_sequence(api, row.input["$sequence"])
    assert cancel["success"] is True
    assert (run["status"], run["result"]) == ("canceled", None)
    assert run["error"]["errorCode"] == row.expect_code
    assert run["error"]["actor"].startswith("token:")
    assert abs(run["error"]["at"] - time.time() * 1000) < 60_000


@pytest.mark.usefixtures("background_worker")
@pytest.mark.parametrize("row", sequences("idempotencyKey"), ids=str)
def test_a_repeated_key_returns_the_same_run_until_the_key_expires(
    api: httpx.Client, row: Row
) -> None:
    first, second = send_sequence(api, row.input["$sequence"])
    has_expired = "$advance_ms" in str(row.input)
    assert first["deduplicated"] is False
    assert second["deduplicated"] is not has_expired
    assert (first["runId"] == second["runId"]) is not has_expired


def send_concurrently(api: httpx.Client, row: Row) -> list[dict[str, Any]]:
    times, arguments = row.input["$parallel"]
    call = request_of(row.tool, arguments)
    with ThreadPoolExecutor(times) as pool:
        responses = list(pool.map(lambda _: api.request(**call), range(times)))
    assert all(response.is_success for response in responses)
    return [response.json() for response in responses]


def parallel(tool: str) -> list[Row]:
    return [row for row in MULTI_CALL if "$parallel" in row.input and row.tool == tool]


@pytest.mark.usefixtures("background_worker")
@pytest.mark.parametrize("row", parallel("run_task_template"), ids=str)
def test_concurrent_calls_with_one_key_create_one_run(api: httpx.Client, row: Row) -> None:
    answers = send_concurrently(api, row)
    assert len({answer["runId"] for answer in answers}) == 1
    assert [answer["deduplicated"] for answer in answers].count(False) == 1
    assert Run.objects.count() == 1


@pytest.mark.usefixtures("existing_objects")
@pytest.mark.parametrize("row", parallel("cancel_task_run"), ids=str)
def test_concurrent_cancels_cancel_a_run_once(api: httpx.Client, row: Row) -> None:
    answers = send_concurrently(api, row)
    assert [answer["success"] for answer in answers].count(True) == 1
    assert AuditEntry.objects.filter(action="run.canceled", resource_id="run_running").count() == 1


def test_an_input_is_sent_exactly_as_the_row_contains_it() -> None:
    assert b"NaN" in encode({"a": {"$raw_number": "NaN"}})
    assert request_of("get_task_run", {"runId": "a b", "x": True}) == {
        "method": "GET",
        "url": "/api/v1/runs/a%20b?x=true",
    }
