"""Named sessions that stay open in this process between runs; for the loop thread only."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runners.browser.pool.runtime import get_runtime
from runners.browser.session.session import OpenBrowserSession
from runners.trust_level import TrustLevel

State = tuple[Mapping[str, Any], list[str]]  # Playwright's storage_state, and URLs of tabs


@dataclass
class _PooledSession:
    """An open session.

    Attributes:
        holder: the worker id under which it was opened; for another id it is out of date.
        lock: held while the session is checked out.
        idle_since: a `time.monotonic()` value.
    """

    session: OpenBrowserSession
    holder: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    idle_since: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class CheckedOutSession:
    """A session that one run uses.

    Attributes:
        restored: it was opened now, from its saved state or empty.
    """

    session: OpenBrowserSession
    restored: bool


class SessionPool:
    """The open sessions of this process, by id."""

    def __init__(self) -> None:
        self._open: dict[str, _PooledSession] = {}

    async def check_out(
        self,
        session_id: str,
        *,
        holder: str,
        run_id: str,
        trust: TrustLevel,
        max_tabs: int,
        storage: Mapping[str, Any] | None,
    ) -> CheckedOutSession:
        """Check out a session for a run: the open one, or one that is opened with `storage`.

        Waits while a canceled run that used the session is still ending.
        """
        while True:
            pooled = self._open.get(session_id)
            if pooled is not None and pooled.holder != holder:
                await self.drop(session_id)
                continue
            restored = pooled is None
            if pooled is None:
                session = await get_runtime().open_session(
                    run_id=run_id, trust=trust, max_tabs=max_tabs, storage=storage
                )
                pooled = self._open[session_id] = _PooledSession(session, holder)
            await pooled.lock.acquire()
            if self._open.get(session_id) is pooled:
                break
            pooled.lock.release()  # it was dropped while its run ended
        pooled.session.run_id = run_id
        return CheckedOutSession(pooled.session, restored)

    async def check_in(self, session_id: str, checkout: CheckedOutSession) -> None:
        """Return a session to the pool; it stays open. The run's trace recording is discarded."""
        try:
            await checkout.session.tracer.drop()
        finally:  # even if the browser fails: the next run must not wait forever
            pooled = self._open.get(session_id)
            if pooled is not None and pooled.session is checkout.session:
                pooled.idle_since = time.monotonic()
                pooled.lock.release()

    def __len__(self) -> int:
        """Return how many sessions are open. Safe from any thread."""
        return len(self._open)

    def ids(self) -> list[str]:
        """Return the ids of the open sessions, longest idle first."""
        return sorted(self._open, key=lambda session_id: self._open[session_id].idle_since)

    def idle_s(self, session_id: str) -> float | None:
        """Return for how long a session has been idle; None if a run uses it or it is not open."""
        pooled = self._open.get(session_id)
        if pooled is None or pooled.lock.locked():
            return None
        return time.monotonic() - pooled.idle_since

    async def read_state(self, session_id: str) -> State | None:
        """Return the state of an open session; None if it is not open or has no new state."""
        pooled = self._open.get(session_id)
        return None if pooled is None else await pooled.session.read_state()

    async def drop(self, session_id: str) -> None:
        """Close a session; the next run that needs it restores it from its saved state."""
        pooled = self._open.pop(session_id, None)
        if pooled is not None:
            await pooled.session.close()


_pools: dict[int, SessionPool] = {}


def get_session_pool() -> SessionPool:
    """Return the session pool of this process.

    Its coroutines run on `runners.invocation.event_loop.get_loop()` only.
    """
    return _pools.setdefault(os.getpid(), SessionPool())
