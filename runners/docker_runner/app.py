"""The runner's ASGI application: GET /health, GET /tools and POST /execute."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import orjson
from pydantic import ValidationError

from decisions.foundation.validation.model_errors import first_error
from runners.docker_runner.access import AccessControl, check_content, check_head
from runners.docker_runner.catalogue import TOOLS, published
from runners.docker_runner.envelope import Envelope, read_envelope
from runners.docker_runner.errors import (
    CommandInterrupted,
    RunnerDefect,
    UnknownRunnerTool,
    WrongArguments,
    error_object,
)
from runners.docker_runner.isolation.base import Isolation, IsolationName, RunnerFolder
from runners.docker_runner.load import usage
from runners.docker_runner.refusals import (
    PathNotServed,
    RequestRefused,
    RunnerBusy,
    RunnerMethodNotAllowed,
)
from runners.docker_runner.request_body import Receive, RequestBody
from runners.docker_runner.response_stream import OutputBuffer, ResponseStream, Send, send_json
from runners.docker_runner.tool import MAX_TIMEOUT_MS, ToolEnvironment
from runners.errors import ToolFailed

SERVICE = "continuity-docker-runner"
MAX_CALLS = 64
LONGEST_S = MAX_TIMEOUT_MS / 1000 + 60
SWEEP_EVERY_S = 60.0
Scope = Mapping[str, Any]
log = logging.getLogger(__name__)


class RunnerApp:
    """The ASGI application that uvicorn calls."""

    def __init__(
        self, folder: RunnerFolder, isolation: Isolation, name: IsolationName, access: AccessControl
    ) -> None:
        self._runner_folder, self._isolation, self._name = folder, isolation, name
        self._access = access
        self._running = 0
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End the calls in flight; each is answered that its effect is unknown."""
        self._stopping.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; a WebSocket is refused."""
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        body = RequestBody(headers, receive)
        try:
            check_head(scope["headers"])
            self._access.check_origin(headers)
            if scope["path"] == "/health":
                _need_method(scope, "GET", "HEAD")
                await send_json(send, 200, self._health(scope, headers))
            elif scope["path"] == "/tools":
                _need_method(scope, "GET", "HEAD")
                self._access.check_token(headers)
                await send_json(send, 200, published())
            elif scope["path"] == "/execute":
                _need_method(scope, "POST")
                self._access.check_token(headers)
                check_content(headers)
                await self._accept(body, send)
            else:
                raise PathNotServed("Served are GET /health, GET /tools and POST /execute.")
        except RequestRefused as refusal:
            await (
                body.discard()
            )  # or a client that still sends gets a broken connection instead of the response
            await _refuse(send, refusal)
        except Exception:
            defect = _defect()
            log.exception("unexpected exception in a call, %s", defect.details["errorId"])
            with contextlib.suppress(RuntimeError):  # a started response can only be cut off
                await send_json(send, 500, {"ok": False, "error": error_object(defect)})

    def _health(self, scope: Scope, headers: Mapping[bytes, bytes]) -> dict[str, Any]:
        """Return the runner's state; the folder's path only for callers on the same machine."""
        is_local = self._access.is_local(scope, headers)
        return {
            "ok": True,
            "service": SERVICE,
            "isolation": self._name,
            "workspaceRoot": str(self._runner_folder.root) if is_local else None,
            "usage": usage(self._running, MAX_CALLS),
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }

    async def _accept(self, body: RequestBody, send: Send) -> None:
        if self._running >= MAX_CALLS:
            raise RunnerBusy(
                f"{MAX_CALLS} calls are in flight, which is the limit. Try again later."
            )
        self._running += 1
        try:
            await self._execute(read_envelope(await body.read()), body.receive, send)
        finally:
            self._running -= 1

    async def _execute(self, envelope: Envelope, receive: Receive, send: Send) -> None:
        """Execute the call and stream its output; end it when the caller disconnects."""
        output = OutputBuffer()
        working = asyncio.create_task(self._perform(envelope, output.append))
        writing = asyncio.create_task(ResponseStream(send).write(output, working))
        leaving = asyncio.create_task(_disconnected(receive))
        stopping = asyncio.create_task(self._stopping.wait())
        tasks = (working, writing, leaving, stopping)
        first = asyncio.FIRST_COMPLETED
        try:
            await asyncio.wait({writing, leaving, stopping}, timeout=LONGEST_S, return_when=first)
            if stopping.done() and not writing.done():
                working.cancel()
                await asyncio.wait({writing, leaving}, return_when=first)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if (
            writing.done()
            and not writing.cancelled()
            and (error := writing.exception()) is not None
        ):
            raise error

    async def _perform(self, envelope: Envelope, emit: Callable[[str], None]) -> dict[str, Any]:
        """Return the ToolResult of a call; only cancellation raises, unless the runner stops."""
        started, code = time.monotonic(), "CANCELLED"
        try:
            output = await self._call(
                envelope, ToolEnvironment(self._runner_folder, self._isolation, emit)
            )
        except ToolFailed as failed:
            code = failed.code
            return {"ok": False, "error": error_object(failed)}
        except asyncio.CancelledError:
            if not self._stopping.is_set():
                raise
            stopped = CommandInterrupted(
                "The runner was stopped during the call, which ended it; its effect is unknown."
            )
            code = stopped.code
            return {"ok": False, "error": error_object(stopped)}
        except Exception:
            defect = _defect()
            log.exception("unexpected exception in a call, %s", defect.details["errorId"])
            code = defect.code
            return {"ok": False, "error": error_object(defect)}
        else:
            code = "OK"
            return {"ok": True, "output": output}
        finally:
            _log_call(envelope, code, started)

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        """Handle ASGI lifespan events. Blocking tools use threads: one per call."""
        sweeping = None
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                threads = ThreadPoolExecutor(MAX_CALLS + 1, thread_name_prefix="runner")
                asyncio.get_running_loop().set_default_executor(threads)
                sweeping = asyncio.create_task(self._sweep_regularly())
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                if sweeping is not None:
                    sweeping.cancel()
                return

    async def _sweep_regularly(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            await self._isolation.sweep()

    async def _call(self, envelope: Envelope, env: ToolEnvironment) -> Mapping[str, Any]:
        tool = TOOLS.get(envelope.call.name)
        if tool is None:
            raise UnknownRunnerTool(
                f"This runner has no tool {envelope.call.name[:64]!r}.",
                details={"tools": sorted(TOOLS)},
            )
        try:
            args = tool.arguments.model_validate(envelope.call.args)
        except ValidationError as error:
            raise WrongArguments(f"{tool.name}: {first_error(error, whole='the value')}") from None
        return await tool.function(args, env)


def _need_method(scope: Scope, *methods: str) -> None:
    if scope["method"] not in methods:
        raise RunnerMethodNotAllowed(f"{scope['path']} accepts {' or '.join(methods)} only.")


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _defect() -> RunnerDefect:
    """Return the error for a defect: its id in the log, without details."""
    error_id = f"err_{secrets.token_hex(6)}"
    return RunnerDefect(
        "Internal error of the runner; its log has the cause under the error id.",
        details={"errorId": error_id},
    )


async def _refuse(send: Send, refusal: RequestRefused) -> None:
    error = {"code": refusal.code, "message": refusal.message}
    await send_json(send, refusal.status, {"ok": False, "error": error}, refusal.headers)


def _log_call(envelope: Envelope, code: str, started: float) -> None:
    """Log a call as a line of JSON, without its arguments and output."""
    entry = {
        "call": envelope.call.name,
        "code": code,
        "runId": envelope.ctx.run_id,
        "toolCallId": envelope.ctx.tool_call_id,
        "targetId": envelope.target.target_id,
        "ms": round((time.monotonic() - started) * 1000),
    }
    log.info("%s", orjson.dumps(entry).decode())
