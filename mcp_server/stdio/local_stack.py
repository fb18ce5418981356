"""The door of stdio: this machine's own user, on a home that is prepared and a stack that lives.

`mcp_stdio` answers the handshake first. Then, in the background, it prepares the home and makes
sure that a stack lives on it (mechanisms 10); a call waits for what it needs. What failed is tried
again by the next call, so a person can mend it while the host goes on.
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

from decisions.errors import NotReady
from decisions.identity.principals import Principal, local_principal
from mcp_server.protocol.request_context import MessageContext
from runs.installation.home.errors import StackError
from runs.installation.home.locks import Membership
from runs.installation.home.paths import home_paths
from runs.installation.home.start import ensure_stack
from runs.installation.home.state import StackInfo

PATIENCE_S = 40.0  # how long a call waits for its ground; the start itself goes on
LOOK_S = 3.0  # between two looks after the stack while a call lasts
T = TypeVar("T")


def _not_ready(told: str) -> NotReady:
    """Return the refusal with the first line of what was told, unless that is a traceback's."""
    first = told.strip().partition("\n")[0][:500]
    if first.startswith("Traceback"):
        first = f"The stack does not start; {home_paths().log('up')} tells why."
    return NotReady(first, details={"causeCode": "STACK_UNAVAILABLE"})


class _Shared(Generic[T]):
    """Blocking work, done once for all who ask, on a daemon thread: it never holds up our end."""

    def __init__(self, work: Callable[[], T], *, keep: bool) -> None:
        self._work = work
        self._keep = keep
        self._lock = threading.Lock()
        self._latest: Future[T] | None = None

    def ask(self) -> Future[T]:
        """Return the outcome to come: of the work under way, a success that is kept, or anew."""
        with self._lock:
            latest = self._latest
            if latest is not None and not latest.done():
                return latest
            if latest is not None and self._keep and latest.exception() is None:
                return latest
            self._latest = latest = Future()
        latest.set_running_or_notify_cancel()  # one who stops waiting must not cancel it for all
        threading.Thread(target=self._do, args=(latest,), daemon=True).start()
        return latest

    def _do(self, outcome: Future[T]) -> None:
        try:
            outcome.set_result(self._work())
        except Exception as error:  # noqa: BLE001  (it is raised where it is waited for)
            outcome.set_exception(error)
        finally:
            connections.close_all()


class StdioTransport:
    """Admits the local principal."""

    def __init__(self) -> None:
        self._member = ExitStack()
        self._home = _Shared(self._prepare, keep=True)
        self._stack: _Shared[StackInfo] = _Shared(ensure_stack, keep=False)
        self._keeping: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Begin to prepare in the background; returns at once."""
        self._home.ask()

    async def authenticate(self, context: MessageContext, *, needs_stack: bool) -> Principal:
        """Return the local principal once the home is ready, and the stack where it is needed.

        Raises:
            NotReady: It cannot be had, or not within PATIENCE_S; the message names the way out.
        """
        try:
            async with asyncio.timeout(PATIENCE_S):
                principal = await asyncio.wrap_future(self._home.ask())
                if needs_stack and settings.EMBEDDED:
                    await asyncio.wrap_future(self._stack.ask())
                    self._keep_up_for(asyncio.current_task())
        except StackError as problem:
            raise _not_ready(str(problem)) from None
        except TimeoutError:
            told = f"The stack was not ready within {PATIENCE_S:.0f} s; it is still starting."
            raise _not_ready(told) from None
        return principal

    def _keep_up_for(self, call: asyncio.Task[Any] | None) -> None:
        """See to the stack for as long as a call lasts: one that dies, or was about to when it was
        asked for, would leave the call waiting for nobody.
        """
        if call is not None:
            keeping = asyncio.create_task(self._keep_up(call))
            self._keeping.add(keeping)
            keeping.add_done_callback(self._keeping.discard)

    async def _keep_up(self, call: asyncio.Task[Any]) -> None:
        while not (await asyncio.wait([call], timeout=LOOK_S))[0]:
            with contextlib.suppress(StackError):  # the next look tries again
                await asyncio.wrap_future(self._stack.ask())

    def _prepare(self) -> Principal:
        from runs.installation.home.prepare import prepare_home

        prepare_home()
        principal = local_principal()
        if settings.EMBEDDED:
            self._member.enter_context(Membership())
            self._stack.ask()
        return principal
