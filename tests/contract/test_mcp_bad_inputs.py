"""Test that every row of bad inputs gets its code over MCP and that the server keeps running."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from artifacts.models import Artifact
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runners.browser.session.refused_requests import LATE_EVENT_SECONDS
from runners.models import BrowserSession
from runners.network.proxy import EgressProxy, Stream
from runners.network.socks5 import Destination
from runs.models import Run
from tests.contract.bad_inputs import Row, encode, in_samples, raw_line, rows
from tests.contract.egress_rows import (
    FixturesSite,
    check_item,
    fixtures_site,  # noqa: F401  (a fixture)
    is_about_egress,
)
from tests.contract.mcp_host import Host, error_of, structured

# Rows that these tests cannot send over MCP, with the reason; they are listed, not skipped.
LEFT_OUT = {
    "login_keep_session": "test_login_rows.py sends them",
    "$headers": "content encodings are HTTP's alone",
}
OBJECTS = (
    "run_ok",
    "run_canceled",
    "run_expired",
    "run_of_other_user",
    "run_running",
    "art_1000b",
    "art_ok",
    "art_empty",
    "art_expired",
    "art_utf8_4byte",
    "art_row_without_blob",
    "art_of_other_user",
    "sess_of_other_user",
    "sess_closed",
)
LATE_SECONDS = 3 * LATE_EVENT_SECONDS  # longer than a read that does not wait for the socket
RUNS = rows("mcp+rest:runs")
STDIO = rows("mcp:stdio")


def reason_left_out(row: Row) -> str | None:
    """Return why these tests do not send a row over MCP, or None."""
    text = str(row.input)
    return next((reason for substring, reason in LEFT_OUT.items() if substring in text), None)


SENT = [row for row in RUNS if reason_left_out(row) is None]


def is_single(row: Row) -> bool:
    return not {"$sequence", "$parallel"} & set(row.input)


def waits(row: Row) -> bool:
    """Return whether the row's call waits for a run's end, so that it needs a worker."""
    options = row.input.get("options", {})
    submits = row.tool == "run_task_template" and row.expect_code.partition(":")[0] in {
        "OK",
        "item",
    }
    return submits and isinstance(options, dict) and options.get("mode") != "async"


SINGLE_CALL = [row for row in SENT if is_single(row)]
EGRESS = [row for row in SENT if is_about_egress(row)]
REMOTE = [row for row in SENT if row.is_remote]
LOCAL = [row for row in SINGLE_CALL if row not in EGRESS and row not in REMOTE]
NOT_WAITING = [row for row in LOCAL if not waits(row)]
WITH_OBJECTS = [
    row for row in NOT_WAITING if any(f"'{name}'" in str(row.input) for name in OBJECTS)
]
WITHOUT_OBJECTS = [row for row in NOT_WAITING if row not in WITH_OBJECTS]
WAITING = [row for row in LOCAL if waits(row)]
MULTI_CALL = {row.source: row for row in SENT if not is_single(row)}


def code_of(answer: dict[str, Any]) -> str:
    """Return the code of an answer in the form that the rows use."""
    if "error" in answer:
        return f"RPC_{answer['error']['code']}"
    if answer["result"]["isError"]:
        return str(error_of(answer)["errorCode"])
    return "OK"


@pytest.fixture
def existing_objects(
    principal: Principal,
    outsider: Principal,
    make_run: Callable[..., Run],
    make_artifact: Callable[..., str],
) -> None:
    """Create the runs, artifacts and sessions that rows refer to."""
    now = datetime.now(UTC)
    make_run(id="run_ok", status="succeeded", result={"done": 1})
    make_run(id="run_canceled", status="canceled")
    make_run(id="run_expired", status="succeeded", ended_at=now - timedelta(hours=1))
    make_run(id="run_of_other_user", status="running", workspace_id=outsider.workspace_id)
    make_run(id="run_running", status="running", ready=False)
    contents = {
        "art_1000b": b"x" * 1000,
        "art_ok": b"{}",
        "art_empty": b"",
        "art_expired": b"x",
        "art_utf8_4byte": "😀😀".encode(),
        "art_row_without_blob": b"x",
        "art_of_other_user": b"x",
    }
    for name, data in contents.items():
        Artifact.objects.filter(id=make_artifact(data)).update(id=name)
    named = Artifact.objects.filter
    named(id="art_expired").update(expired_at=now, expires_at=now)
    named(id="art_row_without_blob").update(sha256="0" * 64)
    named(id="art_of_other_user").update(workspace_id=outsider.workspace_id)
    for name, owner in (("sess_of_other_user", outsider), ("sess_closed", principal)):
        BrowserSession.objects.create(
            id=name,
            tenant_id=owner.tenant_id,
            workspace_id=owner.workspace_id,
            created_at=now,
            closed_at=now if name == "sess_closed" else None,
        )


@pytest.fixture
def checked_host(host: Host) -> Iterator[Host]:
    """Connect a host, and check after the test that its server answers a valid call."""
    yield host
    assert structured(host.call("get_runtime_profile", {}))["maxUrls"] == 1000


def send(host: Host, row: Row) -> dict[str, Any]:
    """Send a row's call and return the answer."""
    line = raw_line(row.input)
    if line is None:
        return host.call(row.tool, encode(row.input))
    host.send(line)
    return host.receive()


def expected(row: Row) -> str:
    """Return the row's code as MCP reports it: HTTP's 400 for broken JSON is a parse error."""
    return "RPC_-32700" if row.expect_code == "HTTP_400" else row.expect_code


def test_every_row_is_run_or_has_its_reason() -> None:
    sent = len(NOT_WAITING) + len(WAITING) + len(REMOTE) + len(EGRESS) + len(MULTI_CALL)
    left_out = [row for row in RUNS if reason_left_out(row)]
    assert sent + len(left_out) == len(RUNS)
    assert len(left_out) <= 4


@pytest.mark.parametrize("row", in_samples(WITHOUT_OBJECTS, each=1))
def test_a_bad_input_gets_its_code(checked_host: Host, row: Row) -> None:
    answer = send(checked_host, row)
    assert code_of(answer) == expected(row)
    assert len(str(answer)) < 5000 or row.expect_code == "OK"


@pytest.mark.usefixtures("existing_objects")
@pytest.mark.parametrize("row", WITH_OBJECTS, ids=str)
def test_a_call_about_an_existing_object_gets_its_code(checked_host: Host, row: Row) -> None:
    assert code_of(send(checked_host, row)) == expected(row)


@pytest.mark.usefixtures("background_worker")
@pytest.mark.parametrize("row", WAITING, ids=str)
def test_a_sync_run_ends_with_the_code_of_its_item(checked_host: Host, row: Row) -> None:
    run = structured(send(checked_host, row))
    assert run["status"] == "failed"
    if row.expect_code != "OK":
        expected_code = row.expect_code.removeprefix("item:")
        assert run["error"]["errorCode"] == expected_code
        assert run["error"]["details"]["items"][0]["error"]["errorCode"] == expected_code


@pytest.mark.usefixtures("background_worker")
@pytest.mark.parametrize("row", REMOTE, ids=str)
def test_a_remote_callers_item_gets_its_code(remote_host: Host, row: Row) -> None:
    check_item(row, structured(send(remote_host, row)))


@pytest.mark.usefixtures("background_worker")
@pytest.mark.parametrize("row", EGRESS, ids=str)
def test_a_remote_callers_page_cannot_reach_a_forbidden_address(
    remote_host: Host,
    fixtures_site: FixturesSite,  # noqa: F811
    row: Row,
) -> None:
    run = structured(send(remote_host, fixtures_site.with_port(row)))
    fixtures_site.check(row, run)


@pytest.mark.slow
@pytest.mark.usefixtures("background_worker")
@pytest.mark.parametrize("row", [row for row in EGRESS if "websocket" in str(row.input)], ids=str)
def test_a_websocket_that_is_refused_late_is_named_in_a_warning(
    remote_host: Host,
    fixtures_site: FixturesSite,  # noqa: F811
    row: Row,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge = EgressProxy._connect

    async def judge_late(proxy: EgressProxy, to: Destination) -> Stream:
        if to.port == fixtures_site.forbidden.port:
            await asyncio.sleep(LATE_SECONDS)
        return await judge(proxy, to)

    monkeypatch.setattr(EgressProxy, "_connect", judge_late)
    run = structured(send(remote_host, fixtures_site.with_port(row)))
    fixtures_site.check(row, run)


def sequences(directive: str) -> list[Row]:
    return [row for row in MULTI_CALL.values() if directive in str(row.input.get("$sequence"))]


def advance(milliseconds: int) -> None:
    """Make every run older by this many milliseconds."""
    for run in Run.objects.all():
        age = timedelta(milliseconds=milliseconds)
        ended_at = run.ended_at - age if run.ended_at else None
        Run.objects.filter(id=run.id).update(created_at=run.created_at - age, ended_at=ended_at)


def send_sequence(host: Host, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send the calls of a sequence and return their answers."""
    answers: list[dict[str, Any]] = []
    for step in steps:
        if "$advance_ms" in step:
            advance(step["$advance_ms"])
        elif "$cancel_while" in step:
            if step["$cancel_while"] == "running":
                Run.objects.update(status="running", started_at=datetime.now(UTC))
            answers.append(
                structured(host.call("cancel_task_run", {"runId": answers[-1]["runId"]}))
            )
        elif "$get" in step:
            answers.append(structured(host.call("get_task_run", {"runId": answers[-1]["runId"]})))
        else:
            answers.append(structured(host.call("run_task_template", encode(step))))
    return answers


@pytest.mark.parametrize("row", sequences("$cancel_while"), ids=str)
def test_a_canceled_run_reports_who_canceled_it_and_when(host: Host, row: Row) -> None:
    _, cancel, run = send_sequence(host, row.input["$sequence"])
    assert cancel["success"] is True
    assert (run["status"], run["result"]) == ("canceled", None)
    assert run["error"]["errorCode"] == row.expect_code
    assert run["error"]["actor"] == host.actor
    assert abs(run["error"]["at"] - time.time() * 1000) < 60_000


@pytest.mark.usefixtures("background_worker")
@pytest.mark.parametrize("row", sequences("idempotencyKey"), ids=str)
def test_a_repeated_key_returns_the_same_run_until_the_key_expires(host: Host, row: Row) -> None:
    first, second = send_sequence(host, row.input["$sequence"])
    has_expired = "$advance_ms" in str(row.input)
    assert first["deduplicated"] is False
    assert second["deduplicated"] is not has_expired
    assert (first["runId"] == second["runId"]) is not has_expired


def send_concurrently(host: Host, row: Row) -> list[dict[str, Any]]:
    times, call = row.input["$parallel"]
    ids = [host.start_call(row.tool, encode(call)) for _ in range(times)]
    return [structured(host.answer_to(request_id)) for request_id in ids]


def parallel(tool: str) -> list[Row]:
    return [row for row in MULTI_CALL.values() if "$parallel" in row.input and row.tool == tool]


@pytest.mark.usefixtures("background_worker")
@pytest.mark.parametrize("row", parallel("run_task_template"), ids=str)
def test_concurrent_calls_with_one_key_create_one_run(host: Host, row: Row) -> None:
    answers = send_concurrently(host, row)
    assert len({answer["runId"] for answer in answers}) == 1
    assert [answer["deduplicated"] for answer in answers].count(False) == 1
    assert Run.objects.count() == 1


@pytest.mark.usefixtures("existing_objects")
@pytest.mark.parametrize("row", parallel("cancel_task_run"), ids=str)
def test_concurrent_cancels_cancel_a_run_once(host: Host, row: Row) -> None:
    answers = send_concurrently(host, row)
    assert [answer["success"] for answer in answers].count(True) == 1
    assert AuditEntry.objects.filter(action="run.canceled", resource_id="run_running").count() == 1


@pytest.mark.parametrize("row", [r for r in STDIO if "line" in r.input], ids=str)
def test_a_bad_line_gets_an_error_and_the_server_keeps_running(
    checked_host: Host, row: Row
) -> None:
    line = row.input["line"]
    checked_host.send(line.encode() if isinstance(line, str) else encode(line))
    assert code_of(checked_host.receive()) == row.expect_code
