"""Execute one tool call on a runner: sent at most once, with limits of time and size."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpcore2
import orjson

from runners.errors import RunnerFailed, ToolFailed
from runners.gateway.connections import MAX_WIRE_BYTES, pool
from runners.gateway.endpoint import checked_endpoint, used_opening
from runners.gateway.request import RunnerCallContext, RunnerTarget
from runners.gateway.response_parser import (
    InvalidRunnerResponse,
    RunnerResponse,
    check_update_count,
    error_code_in,
    error_of_runner,
    parse_response,
    parse_update_bytes,
)
from runners.gateway.stream_parser import UpdateSplitter
from runners.network.http_client import (
    CONNECTION_ERRORS,
    ResponseTooLarge,
    WireUsage,
    connection_error_text,
    send_request,
)
from runners.tools.base import ToolCall, ToolResult

_REFUSAL_MAX_BYTES = 64 * 1024
_REFUSAL_S = 2.0  # to read the body of a response whose status is an error


async def call_runner(call: ToolCall, ctx: RunnerCallContext, target: RunnerTarget) -> ToolResult:
    """Call a tool on a runner and return its result; every failure is a result with the code
    TOOL_EXEC_FAILED (S3 §6).

    Details of a failure: `reason` (runner, connect, timeout, status, not_json, shape, no_endpoint,
    too_large), `runnerCode` if the runner sent one, and `effect`: none if nothing was sent, else
    unknown. Canceling the call closes the connection, which tells the runner to stop.
    """
    usage = WireUsage(MAX_WIRE_BYTES)
    try:
        response = await _send_call(usage, call, ctx, target)
    except ToolFailed as failed:
        return ToolResult(False, error=failed.as_dict())
    except (InvalidRunnerResponse, ResponseTooLarge, TimeoutError, *CONNECTION_ERRORS) as error:
        return _failed(usage, error)
    if not response.result["ok"]:
        return ToolResult(False, error=error_of_runner(response.result["error"]))
    return ToolResult(True, output=response.result["output"])


async def _send_call(
    usage: WireUsage, call: ToolCall, ctx: RunnerCallContext, target: RunnerTarget
) -> RunnerResponse:
    """Send the call and return the runner's response, after all its updates were passed on.

    Raises:
        ToolFailed: The target has no endpoint, or the response's status is an error.
        TimeoutError: The call's time limit is exceeded.
    """
    if not target.endpoint:
        raise RunnerFailed(
            "The target names no endpoint to call.",
            details={"reason": "no_endpoint", "effect": "none", "targetId": target.target_id},
        )
    endpoint = _open(target.endpoint, target.opened_address)
    left = target.deadline(ctx.deadline) - time.monotonic()
    async with (
        asyncio.timeout(max(0.0, left)),
        send_request(
            pool(used_opening(endpoint, target.opened_address)),
            "POST",
            endpoint,
            headers=_headers(ctx, target),
            content=_body(call, ctx, target),
            usage=usage,
        ) as response,
    ):
        if not 200 <= response.status < 300:
            raise await _refused(response)
        return await _read(response, ctx)


def _open(endpoint: str, opened: str) -> str:
    """Return the endpoint to connect to, if the egress rule allows it or its address is opened."""
    try:
        return checked_endpoint(endpoint, opened)
    except ToolFailed as refused:
        details = {**refused.details, "reason": "connect", "effect": "none"}
        raise RunnerFailed(refused.message, details=details) from None


def _headers(ctx: RunnerCallContext, target: RunnerTarget) -> dict[str, str]:
    """Return the headers of S3 §2."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if target.auth_token:
        headers["Authorization"] = f"Bearer {target.auth_token}"
    if ctx.traceparent:
        headers["Traceparent"] = ctx.traceparent
    return headers


def _body(call: ToolCall, ctx: RunnerCallContext, target: RunnerTarget) -> bytes:
    """Return the request of S3 §3."""
    request = {
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
        return orjson.dumps(request)
    except TypeError:  # an integer of more than 64 bits
        return json.dumps(request).encode()


async def _read(response: httpcore2.Response, ctx: RunnerCallContext) -> RunnerResponse:
    """Read the response; pass on its updates, while they arrive if they are sent first."""
    _check_head(response)
    body, splitter, passed_on = bytearray(), UpdateSplitter(), 0
    async for data in response.aiter_stream():
        body += data
        for raw in splitter.feed(data):
            update = parse_update_bytes(raw)
            passed_on += 1
            check_update_count(passed_on)
            ctx.on_update(update)
    parsed = parse_response(bytes(body))
    if passed_on > len(parsed.updates):
        raise InvalidRunnerResponse("shape", "The runner's response has `updates` twice.")
    for update in parsed.updates[passed_on:]:
        ctx.on_update(update)
    return parsed


def _check_head(response: httpcore2.Response) -> None:
    headers = {name.lower(): value.strip().lower() for name, value in response.headers}
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise InvalidRunnerResponse(
            "not_json", "The runner's response has a content encoding that was not requested."
        )
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length[:20]) > MAX_WIRE_BYTES:
        raise ResponseTooLarge


async def _refused(response: httpcore2.Response) -> RunnerFailed:
    """Return the failure for a response whose status is an error."""
    body = bytearray()
    try:
        async with asyncio.timeout(_REFUSAL_S):
            async for data in response.aiter_stream():
                body += data
                if len(body) > _REFUSAL_MAX_BYTES:
                    break
    except (TimeoutError, ResponseTooLarge, httpcore2.NetworkError, httpcore2.ProtocolError):
        pass
    details: dict[str, Any] = {"reason": "status", "status": response.status, "effect": "unknown"}
    code = error_code_in(bytes(body))
    if code is not None:
        details["runnerCode"] = code
    return RunnerFailed(f"The runner answered {response.status}.", details=details)


def _failed(usage: WireUsage, error: Exception) -> ToolResult:
    reason, message = _reason_of(error)
    details = {"reason": reason, "effect": "unknown" if usage.sent else "none"}
    failed = RunnerFailed(message, details=details).as_dict()
    return ToolResult(False, error=failed | {"retryable": not usage.sent})


def _reason_of(error: Exception) -> tuple[str, str]:
    if isinstance(error, InvalidRunnerResponse):
        return error.reason, error.message
    if isinstance(error, ResponseTooLarge):
        return "too_large", f"The runner's response exceeds {MAX_WIRE_BYTES} bytes."
    if isinstance(error, TimeoutError):
        return "timeout", "The runner did not finish the call within its time limit."
    return "connect", connection_error_text(error)
