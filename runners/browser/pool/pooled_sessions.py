"""Named sessions that stay open in this process between runs; used on the loop thread alone."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runners.browser.pool.runtime import get_runtime
from runners.browser.session.session import BrowserSession
from runners.trust import TrustLevel

State = tuple[Mapping[str, Any], list[str]]  # Playwright's storage_state, and addresses of tabs


@dataclass
class _Kept:
    """An open session.

    Attributes:
        holder: the name under which the worker had it; under another name it is out of date.
        idle_since: `time.monotonic()` seconds.
    """

    session: BrowserSession
    holder: str
    lent: asyncio.Lock = field(default_factory=asyncio.Lock)
    idle_since: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class CheckedOutSession:
    """A session in the hands of one run.

    Attributes:
        restored: it was opened anew from its saved state, or from nothing.
    """

    session: BrowserSession
    restored: bool


class SessionPool:
    """The open sessions of this process by their ids."""

    def __init__(self) -> None:
        self._open: dict[str, _Kept] = {}

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
        """Give a session to a run: as it is open here, or opened with `storage`.

        A run that was canceled may still be at its last breath in it: that is waited for.
        """
        while True:
            kept = self._open.get(session_id)
            if kept is not None and kept.holder != holder:
                await self.drop(session_id)
                continue
            restored = kept is None
            if kept is None:
                session = await get_runtime().open_session(
                    run_id=run_id, trust=trust, max_tabs=max_tabs, storage=storage
                )
                kept = self._open[session_id] = _Kept(session, holder)
            await kept.lent.acquire()
            if self._open.get(session_id) is kept:
                break
            kept.lent.release()  # it was dropped while its run ended
        kept.session.run_id = run_id
        return CheckedOutSession(kept.session, restored)

    async def check_in(self, session_id: str, lent: CheckedOutSession) -> None:
        """Take a session back from its run; it stays open, and what was recorded of the run is
        dropped.
        """
        try:
            await lent.session.tracer.drop()
        finally:  # whatever the browser does: the next run must not wait for ever
            kept = self._open.get(session_id)
            if kept is not None and kept.session is lent.session:
                kept.idle_since = time.monotonic()
                kept.lent.release()

    def __len__(self) -> int:
        """Return how many are open; from any thread."""
        return len(self._open)

    def ids(self) -> list[str]:
        """Return the sessions that are open here, the one idle longest first."""
        return sorted(self._open, key=lambda one: self._open[one].idle_since)

    def idle_s(self, session_id: str) -> float | None:
        """Return for how long no run has used a session; None: one does, or it is not open here."""
        kept = self._open.get(session_id)
        if kept is None or kept.lent.locked():
            return None
        return time.monotonic() - kept.idle_since

    async def read_state(self, session_id: str) -> State | None:
        """Return what an open session is now, where that can be told."""
        kept = self._open.get(session_id)
        return None if kept is None else await kept.session.read_state()

    async def drop(self, session_id: str) -> None:
        """Close a session's pages; whoever needs it opens it anew from what was saved."""
        kept = self._open.pop(session_id, None)
        if kept is not None:
            await kept.session.close()


_kept: dict[int, SessionPool] = {}


def get_session_pool() -> SessionPool:
    """Return this process's open sessions; to be used on
    `runners.invocation.event_loop.get_loop()` only.
    """
    return _kept.setdefault(os.getpid(), SessionPool())
