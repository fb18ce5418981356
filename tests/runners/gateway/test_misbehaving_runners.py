"""Misbehaving runners: every case ends as one failure before its timeout, without a second send."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import time
from collections.abc import Callable

import orjson
import pytest

from runners.gateway.client import call_runner
from runners.gateway.connections import MAX_WIRE_BYTES, close_pool
from runners.gateway.request import TIMEOUT_MAX_MS, RunnerTarget
from runners.gateway.response_parser import MAX_UPDATES, InvalidRunnerResponse, parse_response
from runners.tools.base import ToolCall
from tests.services import free_port
from tests.support.runners.runner_calls import call, call_context, failure_details, target_at
from tests.support.runners.stub_runner import RunnerConnection, responding_with, stub_runner

pytestmark = pytest.mark.usefixtures("open_loopback")

SHORT_MS = 300
OK = b'{"ok":true,"output":"x"}'


def trickle(connection: RunnerConnection) -> None:
    connection.head(content_length="1000000")
    while not connection.test_ended.wait(0.02):
        connection.send(b" ")


def trickle_head(connection: RunnerConnection) -> None:
    connection.send(b"HTTP/1.1 200 OK\r\nx-slow: ")
    while not connection.test_ended.wait(0.02):
        connection.send(b"a")


def hang_after_head(connection: RunnerConnection) -> None:
    connection.head(content_length="100")
    connection.hang()


def hang_in_updates(connection: RunnerConnection) -> None:
    connection.head(transfer_encoding="chunked")
    connection.chunk(b'{"updates":["a",')
    connection.hang()


def send_continue_forever(connection: RunnerConnection) -> None:
    while not connection.test_ended.wait(0.001):
        connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")


@pytest.mark.parametrize(
    "respond",
    [
        RunnerConnection.hang,
        hang_after_head,
        hang_in_updates,
        trickle,
        trickle_head,
        send_continue_forever,
    ],
)
def test_a_slow_runner_fails_at_the_calls_timeout(
    respond: Callable[[RunnerConnection], None],
) -> None:
    with stub_runner(respond) as runner:
        result = call(runner.url, timeout_ms=SHORT_MS)
    assert failure_details(result) == {"reason": "timeout", "effect": "unknown"}
    assert len(runner.requests) == 1


def test_the_runs_deadline_ends_a_call_before_the_targets_timeout() -> None:
    started = time.monotonic()
    with stub_runner(RunnerConnection.hang) as runner:
        ctx = call_context(deadline=started + SHORT_MS / 1000)
        result = call(runner.url, timeout_ms=6_000, ctx=ctx)
        took_s = time.monotonic() - started
    assert failure_details(result)["reason"] == "timeout"
    assert took_s < 5


@pytest.mark.parametrize(
    ("timeout_ms", "expected_s"), [(999_999, TIMEOUT_MAX_MS / 1000), (2_000, 2.0), (-5, 0.001)]
)
def test_a_targets_timeout_is_clamped(timeout_ms: int, expected_s: float) -> None:
    target = RunnerTarget("target_a", "t", "w", None, timeout_ms=timeout_ms)
    before = time.monotonic()
    deadline = target.deadline(before + 10_000)
    assert before + expected_s <= deadline <= time.monotonic() + expected_s


def test_the_default_timeout_of_a_target_is_fifteen_seconds() -> None:
    before = time.monotonic()
    deadline = RunnerTarget("target_a", "t", "w", None).deadline(before + 10_000)
    assert before + 15 <= deadline <= time.monotonic() + 15


def test_a_cancelled_call_closes_its_connection() -> None:
    async def interrupted(url: str) -> None:
        call_task = asyncio.create_task(
            call_runner(ToolCall("bash.exec", {}), call_context(), target_at(url))
        )
        while not runner.requests:
            await asyncio.sleep(0.01)
        call_task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call_task
        assert call_task.cancelled()
        while not disconnected:
            await asyncio.sleep(0.01)
        await close_pool()

    disconnected: list[bool] = []

    def record_disconnect(connection: RunnerConnection) -> None:
        connection.hang()  # until the caller disconnects
        disconnected.append(not connection.test_ended.is_set())

    with stub_runner(record_disconnect) as runner:
        asyncio.run(interrupted(runner.url))
    assert disconnected == [True]


def reset_at_once(connection: RunnerConnection) -> None:
    connection.reset()


def reset_in_the_body(connection: RunnerConnection) -> None:
    connection.head(content_length="1000")
    connection.send(b'{"ok":true,')
    connection.reset()


def close_in_the_body(connection: RunnerConnection) -> None:
    connection.head(content_length="1000")
    connection.send(b'{"ok":true,')
    connection.end()


def garbage(connection: RunnerConnection) -> None:
    connection.send(b"\x00\xff\xfe not HTTP at all\r\n\r\n")
    connection.end()


def endless_head(connection: RunnerConnection) -> None:
    connection.send(b"HTTP/1.1 200 OK\r\n")
    with contextlib.suppress(OSError):
        while not connection.test_ended.is_set():
            connection.send(b"x: " + b"a" * 8000 + b"\r\n")


@pytest.mark.parametrize(
    "respond", [reset_at_once, reset_in_the_body, close_in_the_body, garbage, endless_head]
)
def test_a_broken_connection_leaves_the_effect_unknown(
    respond: Callable[[RunnerConnection], None],
) -> None:
    with stub_runner(respond) as runner:
        result = call(runner.url)
    assert failure_details(result) == {"reason": "connect", "effect": "unknown"}
    assert (result.error or {})["retryable"] is False
    assert len(runner.requests) == 1  # never sent twice


def test_a_refused_connection_has_no_effect_and_is_retryable() -> None:
    result = call(f"http://127.0.0.1:{free_port()}/execute")
    assert failure_details(result) == {"reason": "connect", "effect": "none"}
    assert (result.error or {})["retryable"] is True


@pytest.mark.parametrize("endpoint", [None, ""])
def test_a_target_without_an_endpoint_is_not_called(endpoint: str | None) -> None:
    assert failure_details(call(endpoint)) == {
        "reason": "no_endpoint",
        "effect": "none",
        "targetId": "target_stub",
    }


@pytest.mark.parametrize("status", [400, 401, 404, 409, 500, 503])
def test_a_failing_status_takes_precedence_over_the_body(status: int) -> None:
    with stub_runner(responding_with(OK, status)) as runner:
        result = call(runner.url)
    assert failure_details(result) == {"reason": "status", "status": status, "effect": "unknown"}


def test_the_error_code_of_a_failing_status_is_reported() -> None:
    body = b'{"ok":false,"error":{"code":"UNAUTHORIZED","message":"who are you? token abc"}}'
    with stub_runner(responding_with(body, 401)) as runner:
        result = call(runner.url)
    assert failure_details(result)["runnerCode"] == "UNAUTHORIZED"
    assert "abc" not in str(result.error)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_not_followed(status: int) -> None:
    with (
        stub_runner(responding_with(OK)) as other,
        stub_runner(responding_with(b"", status, location=other.url)) as runner,
    ):
        result = call(runner.url)
    assert failure_details(result)["status"] == status
    assert other.requests == []


@pytest.mark.parametrize("raw", [b"", b"<html>", b'{"ok":true,"output":', b"\xff", b'{"a":' * 5000])
def test_a_response_that_is_not_json_is_a_failure(raw: bytes) -> None:
    with stub_runner(responding_with(raw)) as runner:
        assert failure_details(call(runner.url)) == {"reason": "not_json", "effect": "unknown"}


def test_a_response_without_a_body_is_a_failure() -> None:
    with stub_runner(lambda line: line.head(204)) as runner:
        assert failure_details(call(runner.url))["reason"] == "not_json"


def test_a_response_nested_too_deep_to_store_is_a_failure() -> None:
    raw = b'{"ok":true,"output":' + b"[" * 400 + b"]" * 400 + b"}"
    with stub_runner(responding_with(raw)) as runner:
        assert failure_details(call(runner.url))["reason"] == "shape"


def test_a_compressed_response_is_not_decompressed() -> None:
    bomb = gzip.compress(b'{"ok":true,"output":"' + b"a" * 50_000_000 + b'"}')
    with stub_runner(responding_with(bomb, content_encoding="gzip")) as runner:
        result = call(runner.url)
    assert failure_details(result)["reason"] == "not_json"


def flood(connection: RunnerConnection) -> None:
    connection.head(transfer_encoding="chunked")
    with contextlib.suppress(OSError):
        connection.chunk(b'{"ok":true,"output":"')
        while not connection.test_ended.is_set():
            connection.chunk(b"a" * 65_536)


def flood_without_content(connection: RunnerConnection) -> None:
    connection.head(transfer_encoding="chunked")
    with contextlib.suppress(OSError):
        while not connection.test_ended.is_set():
            connection.send((b"1;" + b"x" * 9000 + b"\r\n \r\n") * 8)


def too_much_in_chunks(connection: RunnerConnection) -> None:
    connection.head(transfer_encoding="chunked")
    with contextlib.suppress(OSError):
        connection.chunk(b'{"ok":true,"output":"' + b"a" * MAX_WIRE_BYTES + b'"}')
        connection.chunk(b"")


def announce_too_much(connection: RunnerConnection) -> None:
    connection.head(content_length=str(MAX_WIRE_BYTES + 1))
    connection.hang()


@pytest.mark.parametrize(
    "respond", [flood, flood_without_content, too_much_in_chunks, announce_too_much]
)
def test_a_response_over_the_size_limit_is_a_failure(
    respond: Callable[[RunnerConnection], None],
) -> None:
    with stub_runner(respond) as runner:
        result = call(runner.url)
    assert failure_details(result) == {"reason": "too_large", "effect": "unknown"}


def test_a_response_just_below_the_size_limit_is_accepted() -> None:
    size = MAX_WIRE_BYTES - 4096
    with stub_runner(responding_with({"ok": True, "output": "a" * size})) as runner:
        assert call(runner.url).output == "a" * size


def test_too_many_updates_end_the_call() -> None:
    updates: list[object] = []
    answer = {"updates": [f"u{n}" for n in range(100_001)], "result": {"ok": True, "output": "x"}}
    with stub_runner(responding_with(answer)) as runner:
        result = call(runner.url, ctx=call_context(updates.append))
    assert failure_details(result)["reason"] == "too_large"
    assert len(updates) == 100_000


@pytest.mark.parametrize("value", [b"1", b"[1,2]", b'"["', b'{"a":1}'])
def test_a_response_of_too_many_values_is_refused_before_it_is_parsed(
    value: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orjson, "loads", lambda _: pytest.fail("it was parsed"))
    with pytest.raises(InvalidRunnerResponse) as refused:
        parse_response(b'{"ok":true,"output":[' + value + (b"," + value) * 600_000 + b"]}")
    assert refused.value.reason == "too_large"


def test_a_response_of_all_updates_that_a_call_may_send_is_accepted() -> None:
    update = b'{"delta":"[a, b]","at":"2026-01-01T00:00:00Z"}'
    updates = b",".join([update] * MAX_UPDATES)
    parsed = parse_response(b'{"updates":[' + updates + b'],"result":{"ok":true,"output":1}}')
    assert len(parsed.updates) == MAX_UPDATES
