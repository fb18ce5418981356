"""The named session of a run under way: looked up, opened or restored, saved, given back."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from django.conf import settings

from decisions.errors import SessionNotFound
from runners.browser.pool.pooled_sessions import CheckedOutSession, get_session_pool
from runners.browser.session.session import BrowserSession
from runners.browser_sessions import SavedState, StateUnreadable, read_state, save_state
from runners.invocation.event_loop import get_loop
from runners.models import BrowserSession as SessionRow
from runners.trust import TrustLevel
from runs.lifecycle.session_lease import release_session_with_run
from runs.models import Run
from runs.sessions.held_pages import take_held_page

SAVE_S = 8.0  # a state that takes longer to read is left as it was saved before
CLOSE_S = 5.0
log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class NamedSession:
    """One run's use of the session that it names, from its claim to its end.

    `look_up`, `save` and the ways to leave it are for the run's own thread, `open` for the loop's.
    """

    def __init__(self, run: Run, worker_id: str) -> None:
        self._run, self._worker_id = run, worker_id
        self._saved: SavedState | None = None
        self._was_used = False
        self._trust: TrustLevel = "remote"
        self._lent: CheckedOutSession | None = None
        self._renewals = 0
        self._is_saved = False

    def look_up(self) -> None:
        """Read what the session was saved as.

        Raises:
            SessionNotFound: It was closed since the submit, or cannot be read any more.
        """
        row = SessionRow.objects.filter(
            id=self._run.session_id, closed_at__isnull=True, worker_id=self._worker_id
        ).first()
        if row is None:
            raise SessionNotFound(f"The session {self._run.session_id} was closed meanwhile.")
        try:
            self._saved = read_state(row)
        except StateUnreadable:
            raise SessionNotFound(
                f"The saved state of the session {row.id} cannot be read with the keys configured."
            ) from None
        self._trust = "local" if row.trust == self._run.trust == "local" else "remote"
        before = Run.objects.filter(session_id=row.id, owns_session=False)
        self._was_used = before.filter(started_at__isnull=False).exclude(id=self._run.id).exists()

    async def open(self) -> BrowserSession:
        """Return the session as it is open in this process, or restored from its saved state."""
        if self._lent is None and (parked := take_held_page(self._run.id)) is not None:
            self._lent = parked.lent
        if self._lent is None:
            self._lent = await get_session_pool().check_out(
                self._run.session_id,
                holder=self._worker_id,
                run_id=self._run.id,
                trust=self._trust,
                max_tabs=settings.MAX_TABS_PER_SESSION,
                storage=self._saved.storage if self._saved else None,
            )
            self._renewals = self._lent.session.renewals
        return self._lent.session

    def warnings(self) -> list[str]:
        """Return what the run's caller has to know of how it got its session."""
        lent = self._lent
        if lent is None:
            return []
        lost = "pages that were open in it, and what they held in memory, are gone."
        if lent.session.renewals > self._renewals:
            return [f"The session's browser died; it was restored from its saved state: {lost}"]
        if lent.restored and self._saved is not None:
            at = self._saved.saved_at.strftime("%Y-%m-%d %H:%M:%S UTC")
            return [f"The session was restored from its saved state of {at}: {lost}"]
        if lent.restored and self._was_used:
            return ["Nothing of the session had been saved when its worker was lost; it is empty."]
        return []

    def save(self) -> None:
        """Keep what the session is now, once; where that cannot be told, what was kept before
        stays.
        """
        if self._lent is None or self._is_saved:
            return
        self._is_saved = True
        state = _on_loop(self._lent.session.read_state(), SAVE_S)
        if state is not None:
            storage, urls = state
            save_state(self._run.session_id, worker_id=self._worker_id, storage=storage, urls=urls)

    def check_in(self) -> None:
        """Leave the session open for the next run."""
        lent, self._lent = self._lent, None
        if lent is not None:
            _on_loop(get_session_pool().check_in(self._run.session_id, lent), CLOSE_S)

    def detach_checkout(self) -> CheckedOutSession | None:
        """Return what this run was lent, which it keeps while it waits; on the loop."""
        lent, self._lent = self._lent, None
        return lent

    def leave(self) -> None:
        """Leave the session to the worker that goes on with the run."""
        self._lent = None
        _on_loop(get_session_pool().drop(self._run.session_id), CLOSE_S)
        release_session_with_run(self._run.session_id, self._worker_id)


def _on_loop(work: Coroutine[Any, Any, Answer], seconds: float) -> Answer | None:
    future = get_loop().submit(work)
    try:
        return future.result(timeout=seconds)
    except (TimeoutError, CancelledError):
        future.cancel()
        log.warning("a browser session did not answer in time")
        return None
