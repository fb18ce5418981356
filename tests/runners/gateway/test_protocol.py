"""A call on a runner follows the runner protocol exactly (S3 §2, §3, §4)."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import orjson
import pytest

from runners.gateway.client import call_runner
from runners.gateway.connections import close_pool, pool
from runners.gateway.request import Update
from runners.tools.base import ToolCall
from tests.support.runners.runner_calls import call, call_context, failure_details, target_at
from tests.support.runners.stub_runner import RunnerConnection, responding_with, stub_runner

pytestmark = pytest.mark.usefixtures("open_loopback")

OK = {"ok": True, "output": "hello"}
CALL = ToolCall("bash.exec", {"cmd": "true"})


def test_the_request_matches_the_protocol_exactly() -> None:
    with stub_runner(responding_with(OK)) as runner:
        call(runner.url)
    request = runner.requests[0]
    assert request.line == "POST /execute HTTP/1.1"
    assert request.json == {
        "call": {"name": "bash.exec", "args": {"cmd": "printf hello"}},
        "ctx": {
            "runId": "run_a",
            "sessionId": "sess_a",
            "runtimeMode": "local",
            "toolCallId": "tool_a",
        },
        "target": {
            "targetId": "target_stub",
            "kind": "docker-runner",
            "tenantId": "t_default",
            "workspaceId": "w_default",
        },
    }


def test_the_headers_request_uncompressed_json() -> None:
    with stub_runner(responding_with(OK)) as runner:
        call(runner.url)
    headers = runner.requests[0].headers
    assert headers["content-type"] == "application/json"
    assert headers["accept-encoding"] == "identity"
    assert "authorization" not in headers
    assert "traceparent" not in headers


def test_the_token_and_the_trace_are_sent_in_headers() -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with stub_runner(responding_with(OK)) as runner:
        call(runner.url, auth_token="s3cret", ctx=call_context(traceparent=trace))
    headers = runner.requests[0].headers
    assert (headers["authorization"], headers["traceparent"]) == ("Bearer s3cret", trace)


def test_arguments_are_sent_unchanged_even_huge_numbers() -> None:
    with stub_runner(responding_with(OK)) as runner:
        call(runner.url, args={"n": 2**70, "text": "日本"})
    assert runner.requests[0].json["call"]["args"] == {"n": 2**70, "text": "日本"}


@pytest.mark.parametrize("answer", [OK, {"result": OK}, {"updates": [], "result": OK}])
def test_both_response_forms_are_accepted(answer: dict[str, Any]) -> None:
    with stub_runner(responding_with(answer)) as runner:
        result = call(runner.url)
    assert (result.ok, result.output, result.error) == (True, "hello", None)


@pytest.mark.parametrize("output", [None, "", 0, [], {"exitCode": 0}, [1, {"a": None}]])
def test_an_output_may_be_any_value(output: Any) -> None:
    with stub_runner(responding_with({"ok": True, "output": output})) as runner:
        result = call(runner.url)
    assert (result.ok, result.output) == (True, output)


def test_a_failure_of_the_tool_keeps_the_runners_own_code() -> None:
    error = {"code": "EXIT_1", "message": "it ended with 1", "details": {"exitCode": 1}}
    with stub_runner(responding_with({"ok": False, "error": error})) as runner:
        result = call(runner.url)
    assert failure_details(result) == {
        "reason": "runner",
        "runnerCode": "EXIT_1",
        "runnerDetails": {"exitCode": 1},
    }
    assert (result.error or {})["message"] == "it ended with 1"


@pytest.mark.parametrize("retryable", [True, False, None])
def test_the_runner_decides_whether_a_failure_is_retryable(retryable: bool | None) -> None:
    error = {"code": "BUSY", "message": "later", "retryable": retryable}
    with stub_runner(responding_with({"result": {"ok": False, "error": error}})) as runner:
        result = call(runner.url)
    assert (result.error or {})["retryable"] is bool(retryable)


@pytest.mark.parametrize(
    "answer",
    [
        {"result": OK, **OK},
        {"updates": [], **OK},
        {"updates": ["a"]},
        {"updates": {}, "result": OK},
        {"updates": [1], "result": OK},
        {"updates": [{"at": "2026-02-14T12:00:00.000Z"}], "result": OK},
        {"updates": [{"delta": "a", "at": 5}], "result": OK},
        {"result": [OK]},
        {"ok": True},
        {"ok": True, "output": 1, "error": {"code": "A", "message": "b"}},
        {"ok": 1, "output": 1},
        {"ok": False, "error": {"code": "", "message": "b"}},
        {"ok": False, "error": {"code": "A"}},
        {"ok": False, "error": {"code": "A", "message": "b", "retryable": "no"}},
        {"ok": False, "error": {"code": "A", "message": "b", "details": []}},
        [OK],
        "ok",
        {},
    ],
)
def test_a_response_of_any_other_form_is_a_shape_failure(answer: Any) -> None:
    with stub_runner(responding_with(answer)) as runner:
        result = call(runner.url)
    assert failure_details(result) == {"reason": "shape", "effect": "unknown"}
    assert (result.error or {})["retryable"] is False


def test_updates_are_reported_in_order_even_after_the_result() -> None:
    updates_received: list[Update] = []
    at = "2026-02-14T12:00:00.000Z"
    answer = {"result": OK, "updates": [{"delta": "1", "at": at}, "2", {"delta": "3"}]}
    with stub_runner(responding_with(answer)) as runner:
        assert call(runner.url, ctx=call_context(updates_received.append)).ok
    assert updates_received == [Update("1", at), Update("2", None), Update("3", None)]


def test_updates_are_reported_while_the_call_is_running() -> None:
    received, updates_received = threading.Semaphore(0), []

    def send_updates(connection: RunnerConnection) -> None:
        connection.head(transfer_encoding="chunked")
        connection.chunk(b'{"updates":[{"delta":"step-1","at":null},')
        assert received.acquire(timeout=60)  # wait until the update is received
        connection.chunk(b'"step-2"')  # its closing delimiter follows later
        connection.chunk(b'],"result":{"ok":true,"output":"done"}}')
        connection.send(b"0\r\n\r\n")

    def record(update: Update) -> None:
        updates_received.append(update.delta)
        received.release()

    with stub_runner(send_updates) as runner:
        result = call(runner.url, ctx=call_context(record))
    assert (result.output, updates_received) == ("done", ["step-1", "step-2"])


def test_a_response_with_duplicate_updates_keys_is_a_shape_failure() -> None:
    raw = b'{"updates":["a","b"],"result":{"ok":true,"output":1},"updates":["a"]}'
    with stub_runner(responding_with(raw)) as runner:
        assert failure_details(call(runner.url))["reason"] == "shape"


def test_calls_reuse_one_connection() -> None:
    with stub_runner(responding_with(OK)) as runner:
        assert call(runner.url, times=20).ok
    assert (len(runner.requests), runner.connections) == (20, 1)


def test_a_connection_that_the_runner_closed_is_not_reused() -> None:
    def once(connection: RunnerConnection) -> None:
        connection.answer(b'{"ok":true,"output":1}')
        connection.end()

    async def twice(url: str) -> list[bool]:
        first = await call_runner(CALL, call_context(), target_at(url))
        while (pooled := pool().connections) and not pooled[
            0
        ].has_expired():  # its close has not arrived yet
            await asyncio.sleep(0.01)
        second = await call_runner(CALL, call_context(), target_at(url))
        await close_pool()
        return [first.ok, second.ok]

    with stub_runner(once) as runner:
        assert asyncio.run(twice(runner.url)) == [True, True]
    assert len(runner.requests) == runner.connections == 2


def test_concurrent_calls_each_get_their_own_response() -> None:
    def echo(connection: RunnerConnection) -> None:
        assert connection.request is not None
        connection.answer(
            orjson.dumps({"ok": True, "output": connection.request.json["call"]["args"]})
        )

    async def many(url: str) -> list[Any]:
        calls = [
            call_runner(ToolCall("echo", {"n": n}), call_context(), target_at(url))
            for n in range(40)
        ]
        results = await asyncio.gather(*calls)
        await close_pool()
        return [result.output for result in results]

    with stub_runner(echo) as runner:
        assert asyncio.run(many(runner.url)) == [{"n": n} for n in range(40)]


def test_a_run_with_no_time_left_sends_nothing() -> None:
    with stub_runner(responding_with(OK)) as runner:
        result = call(runner.url, ctx=call_context(deadline=time.monotonic() - 1))
    assert failure_details(result) == {"reason": "timeout", "effect": "none"}
    assert runner.requests == []
