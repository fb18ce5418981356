"""A run's use of its named session: load the saved state, open or restore, save, release."""

from __future__ import annotations

from django.conf import settings

from decisions.foundation.errors import SessionNotFound
from runners.browser.pool.pooled_sessions import CheckedOutSession, get_session_pool
from runners.browser.session.session import OpenBrowserSession
from runners.browser_sessions import SavedState, StateUnreadable, read_state, save_state
from runners.invocation.event_loop import get_loop
from runners.models import BrowserSession
from runners.trust_level import TrustLevel
from runs.models import Run
from runs.queue.session_lease import release_session_with_run
from runs.sessions.held_pages import take_held_page

SAVE_S = 8.0  # if reading the state takes longer, the previously saved state stays
CLOSE_S = 5.0


class NamedSession:
    """One run's use of its named session, from the claim of the run to its end.

    `open` and `detach_checkout` are for the loop thread, the other methods for the run's thread.
    """

    def __init__(self, run: Run, worker_id: str) -> None:
        self._run, self._worker_id = run, worker_id
        self._saved: SavedState | None = None
        self._was_used = False
        self._trust: TrustLevel = "remote"
        self._checkout: CheckedOutSession | None = None
        self._renewals = 0
        self._is_saved = False

    def load_state(self) -> None:
        """Read the saved state of the session.

        Raises:
            SessionNotFound: The session was closed since the submit, or its state is unreadable.
        """
        row = BrowserSession.objects.filter(
            id=self._run.session_id, closed_at__isnull=True, worker_id=self._worker_id
        ).first()
        if row is None:
            raise SessionNotFound(
                f"The session {self._run.session_id} was closed before the run started."
            )
        try:
            self._saved = read_state(row)
        except StateUnreadable:
            raise SessionNotFound(
                f"The saved state of the session {row.id} cannot be read with the configured keys."
            ) from None
        self._trust = "local" if row.trust == self._run.trust == "local" else "remote"
        users = Run.objects.filter(session_id=row.id, owns_session=False)
        self._was_used = users.filter(started_at__isnull=False).exclude(id=self._run.id).exists()

    async def open(self) -> OpenBrowserSession:
        """Return the session: the one that is open in this process, or restored from its state."""
        if self._checkout is None and (held := take_held_page(self._run.id)) is not None:
            self._checkout = held.checkout
        if self._checkout is None:
            self._checkout = await get_session_pool().check_out(
                self._run.session_id,
                holder=self._worker_id,
                run_id=self._run.id,
                trust=self._trust,
                max_tabs=settings.MAX_TABS_PER_SESSION,
                storage=self._saved.storage if self._saved else None,
            )
            self._renewals = self._checkout.session.renewals
        return self._checkout.session

    def warnings(self) -> list[str]:
        """Return what the run's caller has to know about how the session was opened."""
        checkout = self._checkout
        if checkout is None:
            return []
        lost = "pages that were open in it, and what they held in memory, are gone."
        if checkout.session.renewals > self._renewals:
            return [f"The session's browser died; it was restored from its saved state: {lost}"]
        if checkout.restored and self._saved is not None:
            at = self._saved.saved_at.strftime("%Y-%m-%d %H:%M:%S UTC")
            return [f"The session was restored from its saved state of {at}: {lost}"]
        if checkout.restored and self._was_used:
            return ["Nothing of the session had been saved when its worker was lost; it is empty."]
        return []

    def save(self) -> None:
        """Save the session's current state, once. If it cannot be read in time, the previous one
        stays.
        """
        if self._checkout is None or self._is_saved:
            return
        self._is_saved = True
        state = get_loop().run(self._checkout.session.read_state(), SAVE_S)
        if state is not None:
            storage, urls = state
            save_state(self._run.session_id, worker_id=self._worker_id, storage=storage, urls=urls)

    def check_in(self) -> None:
        """Return the session to the pool, open for the next run."""
        checkout, self._checkout = self._checkout, None
        if checkout is not None:
            get_loop().run(get_session_pool().check_in(self._run.session_id, checkout), CLOSE_S)

    def detach_checkout(self) -> CheckedOutSession | None:
        """Return the checkout and forget it: the suspended run keeps the session."""
        checkout, self._checkout = self._checkout, None
        return checkout

    def hand_over(self) -> None:
        """Close the session in this process; the worker that resumes the run restores it."""
        self._checkout = None
        get_loop().run(get_session_pool().drop(self._run.session_id), CLOSE_S)
        release_session_with_run(self._run.session_id, self._worker_id)
