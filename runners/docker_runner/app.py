"""The runner's three doors, as an ASGI application: GET /health, GET /tools and POST /execute."""

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

from runners.docker_runner.access import Gatekeeper, check_content, check_head
from runners.docker_runner.catalogue import TOOLS, published
from runners.docker_runner.envelope import Envelope, read_envelope, wrong_in
from runners.docker_runner.errors import RunnerBroken, ToolUnknown, WrongArguments, error_of
from runners.docker_runner.isolation.base import Isolation, IsolationName, Place
from runners.docker_runner.load import usage
from runners.docker_runner.refusals import (
    Busy,
    NoSuchPath,
    Refusal,
    WrongMethod,
)
from runners.docker_runner.request_body import Incoming, Receive
from runners.docker_runner.response_stream import Progress, ProgressiveAnswer, Send, send_json
from runners.docker_runner.tool import MAX_TIMEOUT_MS, Hands
from runners.errors import ToolFailed

SERVICE = "continuity-docker-runner"
MAX_CALLS = 64
LONGEST_S = MAX_TIMEOUT_MS / 1000 + 60
Scope = Mapping[str, Any]
log = logging.getLogger(__name__)


class RunnerApp:
    """What uvicorn calls."""

    def __init__(
        self, place: Place, isolation: Isolation, name: IsolationName, gatekeeper: Gatekeeper
    ) -> None:
        self._place, self._isolation, self._name = place, isolation, name
        self._gatekeeper = gatekeeper
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; a WebSocket is refused."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        body = Incoming(headers, receive)
        try:
            check_head(scope["headers"])
            self._gatekeeper.check_origin(headers)
            if scope["path"] == "/health":
                _need_method(scope, "GET", "HEAD")
                await send_json(send, 200, self._health(scope, headers))
            elif scope["path"] == "/tools":
                _need_method(scope, "GET", "HEAD")
                self._gatekeeper.check_token(headers)
                await send_json(send, 200, published())
            elif scope["path"] == "/execute":
                _need_method(scope, "POST")
                self._gatekeeper.check_token(headers)
                check_content(headers)
                await self._take(body, send)
            else:
                raise NoSuchPath("Served are GET /health, GET /tools and POST /execute.")
        except Refusal as refusal:
            await body.discard()  # or who still sends sees a broken connection and no answer
            await _refuse(send, refusal)
        except Exception:
            broken = _broken()
            log.exception("a call let out an exception, %s", broken.details["errorId"])
            with contextlib.suppress(RuntimeError):  # an answer that has begun can only be cut off
                await send_json(send, 500, {"ok": False, "error": error_of(broken)})

    def _health(self, scope: Scope, headers: Mapping[bytes, bytes]) -> dict[str, Any]:
        """Return the runner's state; where its folder lies is told on its own machine alone."""
        is_local = self._gatekeeper.is_local(scope, headers)
        return {
            "ok": True,
            "service": SERVICE,
            "isolation": self._name,
            "workspaceRoot": str(self._place.root) if is_local else None,
            "usage": usage(self._running, MAX_CALLS),
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }

    async def _take(self, body: Incoming, send: Send) -> None:
        if self._running >= MAX_CALLS:
            raise Busy(f"{MAX_CALLS} calls are under way, which is as many as there may be.")
        self._running += 1
        try:
            await self._execute(read_envelope(await body.read()), body.receive, send)
        finally:
            self._running -= 1

    async def _execute(self, envelope: Envelope, receive: Receive, send: Send) -> None:
        """Do what is asked and tell it; whoever hangs up, or does not read, ends it."""
        progress = Progress()
        working = asyncio.create_task(self._perform(envelope, progress.say))
        writing = asyncio.create_task(ProgressiveAnswer(send).write(progress, working))
        leaving = asyncio.create_task(_hung_up(receive))
        tasks = (working, writing, leaving)
        try:
            await asyncio.wait(
                {writing, leaving}, timeout=LONGEST_S, return_when=asyncio.FIRST_COMPLETED
            )
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

    async def _perform(self, envelope: Envelope, say: Callable[[str], None]) -> dict[str, Any]:
        """Return the ToolResult of a call; nothing but a cancelled call raises."""
        began, code = time.monotonic(), "CANCELLED"
        try:
            output = await self._call(envelope, Hands(self._place, self._isolation, say))
        except ToolFailed as failed:
            code = failed.code
            return {"ok": False, "error": error_of(failed)}
        except Exception:
            broken = _broken()
            log.exception("a call let out an exception, %s", broken.details["errorId"])
            code = broken.code
            return {"ok": False, "error": error_of(broken)}
        else:
            code = "OK"
            return {"ok": True, "output": output}
        finally:
            _note(envelope, code, began)

    async def _call(self, envelope: Envelope, hands: Hands) -> Mapping[str, Any]:
        tool = TOOLS.get(envelope.call.name)
        if tool is None:
            raise ToolUnknown(
                f"This runner has no tool {envelope.call.name[:64]!r}.",
                details={"tools": sorted(TOOLS)},
            )
        try:
            args = tool.arguments.model_validate(envelope.call.args)
        except ValidationError as error:
            raise WrongArguments(f"{tool.name}: {wrong_in(error)}") from None
        return await tool.function(args, hands)


async def _live(receive: Receive, send: Send) -> None:
    """Follow the process's life. Tools that block wait on threads, so there is one for every call,
    and one for what ends it.
    """
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            threads = ThreadPoolExecutor(2 * MAX_CALLS, thread_name_prefix="runner")
            asyncio.get_running_loop().set_default_executor(threads)
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def _need_method(scope: Scope, *methods: str) -> None:
    if scope["method"] not in methods:
        raise WrongMethod(f"{scope['path']} is asked for by {' or '.join(methods)}.")


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _broken() -> RunnerBroken:
    """Return what may be told of a defect: under which name the log has it."""
    error_id = f"err_{secrets.token_hex(6)}"
    return RunnerBroken("A defect of the runner; its log has it.", details={"errorId": error_id})


async def _refuse(send: Send, refusal: Refusal) -> None:
    error = {"code": refusal.code, "message": refusal.message}
    await send_json(send, refusal.status, {"ok": False, "error": error}, refusal.headers)


def _note(envelope: Envelope, code: str, began: float) -> None:
    """Log a call as a line of JSON: what it was, never what it was given or answered."""
    told = {
        "call": envelope.call.name,
        "code": code,
        "runId": envelope.ctx.run_id,
        "toolCallId": envelope.ctx.tool_call_id,
        "targetId": envelope.target.target_id,
        "ms": round((time.monotonic() - began) * 1000),
    }
    log.info("%s", orjson.dumps(told).decode())
