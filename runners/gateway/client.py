"""One call of a tool on a runner: sent at most once, bounded in time and size, told as it runs."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpcore2
import orjson

from runners.errors import RunnerFailed, ToolFailed
from runners.gateway.connections import (
    MAX_WIRE_BYTES,
    TROUBLES,
    Exchange,
    TooMuch,
    pool,
    under_way,
    why_broken,
)
from runners.gateway.endpoint import checked_endpoint, host_of, place_of
from runners.gateway.request import CallContext, RunnerTarget
from runners.gateway.response_parser import (
    Said,
    WrongAnswer,
    check_number,
    code_in,
    cut_update,
    failure_of,
    read_answer,
)
from runners.gateway.stream_parser import UpdateCutter
from runners.tools.base import ToolCall, ToolResult

_REFUSAL_MAX_BYTES = 64 * 1024
_REFUSAL_S = 2.0  # for the body of an answer that is a failure whatever its body says


async def call_runner(call: ToolCall, ctx: CallContext, target: RunnerTarget) -> ToolResult:
    """Call a tool on a runner and return what came of it; whatever goes wrong is a result too
    (TOOL_EXEC_FAILED, S3 §6).

    Details of a failure: `reason` (runner, connect, timeout, status, not_json, shape, no_endpoint,
    too_large), `runnerCode` where the runner named one, `effect`: none, where nothing was sent, or
    unknown. Interrupting it closes the connection, by which the runner learns of it.
    """
    exchange = Exchange()
    try:
        said = await _exchanged(exchange, call, ctx, target)
    except ToolFailed as failed:
        return ToolResult(False, error=failed.as_dict())
    except (WrongAnswer, TooMuch, TimeoutError, *TROUBLES) as trouble:
        return _failed(exchange, trouble)
    if not said.result["ok"]:
        return ToolResult(False, error=failure_of(said.result["error"]))
    return ToolResult(True, output=said.result["output"])


async def _exchanged(
    exchange: Exchange, call: ToolCall, ctx: CallContext, target: RunnerTarget
) -> Said:
    """Return the runner's answer, once every update of it was told.

    Raises:
        ToolFailed: There is no endpoint, or the answer's status is a failure.
        TimeoutError: The call's time is over.
    """
    if not target.endpoint:
        raise RunnerFailed(
            "The target names no endpoint to call.",
            details={"reason": "no_endpoint", "effect": "none", "targetId": target.target_id},
        )
    endpoint = _open(target.endpoint)
    under_way.set(exchange)
    left = target.deadline(ctx.deadline) - time.monotonic()
    async with (
        asyncio.timeout(max(0.0, left)),
        pool().stream(
            "POST",
            httpcore2.URL(**place_of(endpoint)),
            headers=_headers(endpoint, ctx, target),
            content=_body(call, ctx, target),
        ) as response,
    ):
        if not 200 <= response.status < 300:
            raise await _refused(response)
        return await _read(response, ctx)


def _open(endpoint: str) -> str:
    """Return an endpoint as it is called, if the egress rule lets it be."""
    try:
        return checked_endpoint(endpoint)
    except ToolFailed as refused:
        details = {**refused.details, "reason": "connect", "effect": "none"}
        raise RunnerFailed(refused.message, details=details) from None


def _headers(endpoint: str, ctx: CallContext, target: RunnerTarget) -> list[tuple[str, str]]:
    """Return the headers of S3 §2, and those that keep the answer as it is."""
    headers = [
        ("host", host_of(endpoint)),
        ("content-type", "application/json"),
        ("accept", "application/json"),
        ("accept-encoding", "identity"),
    ]
    if target.auth_token:
        headers.append(("authorization", f"Bearer {target.auth_token}"))
    if ctx.traceparent:
        headers.append(("traceparent", ctx.traceparent))
    return headers


def _body(call: ToolCall, ctx: CallContext, target: RunnerTarget) -> bytes:
    """Return the request of S3 §3."""
    told = {
        "call": {"name": call.name, "args": dict(call.args)},
        "ctx": {
            "runId": ctx.run_id,
            "sessionId": ctx.session_id,
            "runtimeMode": ctx.runtime_mode,
            "toolCallId": ctx.tool_call_id,
        },
        "target": {
            "targetId": target.target_id,
            "kind": target.kind,
            "tenantId": target.tenant_id,
            "workspaceId": target.workspace_id,
        },
    }
    try:
        return orjson.dumps(told)
    except TypeError:  # an integer of more than 64 bits
        return json.dumps(told).encode()


async def _read(response: httpcore2.Response, ctx: CallContext) -> Said:
    """Return the answer, having told its updates: those that come first as they come."""
    _check_head(response)
    body, cutter, told = bytearray(), UpdateCutter(), 0
    async for data in response.aiter_stream():
        body += data
        for raw in cutter.feed(data):
            update = cut_update(raw)
            told += 1
            check_number(told)
            ctx.on_update(update)
    said = read_answer(bytes(body))
    if told > len(said.updates):
        raise WrongAnswer("shape", "The runner's answer names its updates twice.")
    for update in said.updates[told:]:
        ctx.on_update(update)
    return said


def _check_head(response: httpcore2.Response) -> None:
    headers = {name.lower(): value.strip().lower() for name, value in response.headers}
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise WrongAnswer("not_json", "The runner's answer is encoded, which nobody asked for.")
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length[:20]) > MAX_WIRE_BYTES:
        raise TooMuch


async def _refused(response: httpcore2.Response) -> RunnerFailed:
    """Return the failure that an answer is by its status, whatever else it says."""
    body = bytearray()
    try:
        async with asyncio.timeout(_REFUSAL_S):
            async for data in response.aiter_stream():
                body += data
                if len(body) > _REFUSAL_MAX_BYTES:
                    break
    except (TimeoutError, TooMuch, httpcore2.NetworkError, httpcore2.ProtocolError):
        pass
    details: dict[str, Any] = {"reason": "status", "status": response.status, "effect": "unknown"}
    code = code_in(bytes(body))
    if code is not None:
        details["runnerCode"] = code
    return RunnerFailed(f"The runner answered {response.status}.", details=details)


def _failed(exchange: Exchange, trouble: Exception) -> ToolResult:
    reason, message = _reason_of(trouble)
    details = {"reason": reason, "effect": "unknown" if exchange.sent else "none"}
    failed = RunnerFailed(message, details=details).as_dict()
    return ToolResult(False, error=failed | {"retryable": not exchange.sent})


def _reason_of(trouble: Exception) -> tuple[str, str]:
    if isinstance(trouble, WrongAnswer):
        return trouble.reason, trouble.message
    if isinstance(trouble, TooMuch):
        return "too_large", f"The runner's answer exceeds {MAX_WIRE_BYTES} bytes."
    if isinstance(trouble, TimeoutError):
        return "timeout", "The runner's time for the call is over."
    return "connect", why_broken(trouble)
