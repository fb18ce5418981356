"""The stdio transport's caller and services: the local user, the home, and a running stack.

`mcp_stdio` answers the handshake first, so that the host does not wait. Then, in the background, it
prepares the home and makes sure that a stack runs on it; a call waits for what it needs. The next
call retries what failed, so a person can fix the cause while the host keeps running.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any, Generic, TypeVar

from django.conf import settings
from django.db import connections

from decisions.foundation.errors import NotReady
from decisions.identity.principals import Principal, local_principal
from mcp_server.protocol.request_context import MessageContext
from runs.operations.home.errors import StackError
from runs.operations.home.locks import membership
from runs.operations.home.paths import home_paths
from runs.operations.home.start import ensure_stack
from runs.operations.home.state import StackInfo

READY_TIMEOUT_S = 40.0  # how long a call waits for the stack, whose start continues afterwards
CHECK_INTERVAL_S = 3.0  # between two checks of the stack during a call
T = TypeVar("T")


def _not_ready(problem: str) -> NotReady:
    """Return a refusal with the problem's first line, or the log's path for a traceback."""
    first = problem.strip().partition("\n")[0][:500]
    if first.startswith("Traceback"):
        first = f"The stack does not start; read the cause in {home_paths().log('up')}."
    return NotReady(first, details={"causeCode": "STACK_UNAVAILABLE"})


class _SharedWork(Generic[T]):
    """Blocking work that concurrent callers share; its daemon thread does not delay the exit."""

    def __init__(self, work: Callable[[], T], *, is_cached: bool) -> None:
        self._work = work
        self._is_cached = is_cached
        self._lock = threading.Lock()
        self._latest: Future[T] | None = None

    def result(self) -> Future[T]:
        """Return a future: of the work in progress, of a cached success, or of a new attempt."""
        with self._lock:
            latest = self._latest
            if latest is not None and not latest.done():
                return latest
            if latest is not None and self._is_cached and latest.exception() is None:
                return latest
            self._latest = latest = Future()
        latest.set_running_or_notify_cancel()  # a caller that times out must not cancel it for all
        threading.Thread(target=self._do, args=(latest,), daemon=True).start()
        return latest

    def _do(self, future: Future[T]) -> None:
        try:
            future.set_result(self._work())
        except Exception as error:  # noqa: BLE001  (the future raises it in the caller)
            future.set_exception(error)
        finally:
            connections.close_all()


class StdioTransport:
    """Authenticates every call as the local principal, and makes sure that the stack runs."""

    def __init__(self) -> None:
        self._membership = ExitStack()
        self._home = _SharedWork(self._prepare_home, is_cached=True)
        self._stack: _SharedWork[StackInfo] = _SharedWork(ensure_stack, is_cached=False)
        self._watching: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Start to prepare the home in the background; returns at once."""
        self._home.result()

    async def authenticate(self, context: MessageContext, *, needs_stack: bool) -> Principal:
        """Return the local principal once the home and, if `needs_stack`, the stack are ready.

        Raises:
            NotReady: One of them is not ready within READY_TIMEOUT_S; the message says what to do.
        """
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                principal = await asyncio.wrap_future(self._home.result())
                if needs_stack and settings.EMBEDDED:
                    await asyncio.wrap_future(self._stack.result())
                    self._watch_stack_during(asyncio.current_task())
        except StackError as problem:
            raise _not_ready(str(problem)) from None
        except TimeoutError:
            message = f"The stack is still starting after {READY_TIMEOUT_S:.0f} s; repeat the call."
            raise _not_ready(message) from None
        return principal

    def _watch_stack_during(self, call: asyncio.Task[Any] | None) -> None:
        """Restart the stack if it stops during a call, which would otherwise wait in vain."""
        if call is not None:
            watching = asyncio.create_task(self._watch_stack(call))
            self._watching.add(watching)
            watching.add_done_callback(self._watching.discard)

    async def _watch_stack(self, call: asyncio.Task[Any]) -> None:
        while not (await asyncio.wait([call], timeout=CHECK_INTERVAL_S))[0]:
            with contextlib.suppress(StackError):  # the next check retries
                await asyncio.wrap_future(self._stack.result())

    def _prepare_home(self) -> Principal:
        # Imported here: Django's migrations load slowly, and the handshake must not wait for them.
        from runs.operations.home.prepare import prepare_home

        prepare_home()
        principal = local_principal()
        if settings.EMBEDDED:
            self._membership.enter_context(membership())
            self._stack.result()
        return principal
