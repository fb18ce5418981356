"""Held pages: browser sessions of suspended runs, open in this process until the runs resume.

Everything but `close_unneeded_pages` is for the loop thread.
"""

from __future__ import annotations

import logging
from concurrent.futures import CancelledError
from dataclasses import dataclass

from django.conf import settings

from runners.browser.pool.pooled_sessions import CheckedOutSession, get_session_pool
from runners.browser.session.session import OpenBrowserSession
from runners.invocation.event_loop import get_loop
from runs.models import Run, RunStatus, Task

CLOSE_S = 8.0
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HeldPage:
    """The session of a suspended run.

    Attributes:
        epoch: the run's while it is suspended; a higher one means that a worker has resumed it.
        session_id: of a named session, which stays checked out for the run; else empty.
    """

    epoch: int
    session: OpenBrowserSession
    session_id: str = ""
    checkout: CheckedOutSession | None = None

    async def close(self) -> None:
        """Close the session; check a named one in, so that other runs can use it."""
        if self.checkout is not None:
            await get_session_pool().check_in(self.session_id, self.checkout)
        else:
            await self.session.close()


_held: dict[str, HeldPage] = {}  # by run


def can_hold_page() -> bool:
    """Return whether one more page may be held. At MAX_WAITING_PAGES none is closed for a new one:
    a person may be looking at each of them.
    """
    return len(_held) < int(settings.MAX_WAITING_PAGES)


def count_held_pages() -> int:
    """Return how many pages are held in this process."""
    return len(_held)


def hold_page(run_id: str, page: HeldPage) -> None:
    """Hold the session of a run that is about to be suspended."""
    _held[run_id] = page


def take_held_page(run_id: str) -> HeldPage | None:
    """Remove and return the session that was held for a run that resumes."""
    return _held.pop(run_id, None)


def close_unneeded_pages(worker_id: str) -> None:
    """Close held pages whose runs have ended or were resumed by another worker. The page of a task
    that a person has taken over stays open, and so does one of a run that this worker has just
    claimed, which takes the page a moment later.

    Queries the database only if pages are held. From any thread.
    """
    held = dict(_held)
    if not held:
        return
    rows = Run.objects.filter(id__in=held)
    runs = {run.id: run for run in rows.only("id", "status", "epoch", "lease_owner", "task_id")}
    for run_id, page in held.items():
        run = runs.get(run_id)
        if run is None or not _is_needed(run, page, worker_id):
            _close(run_id, page)


def _is_needed(run: Run, page: HeldPage, worker_id: str) -> bool:
    if run.status == RunStatus.RUNNING:
        return run.epoch <= page.epoch or run.lease_owner == worker_id
    return run.task_id is not None and Task.objects.is_taken_over(run.task_id)


def _close(run_id: str, page: HeldPage) -> None:
    async def close() -> None:
        if _held.get(run_id) is page:
            take_held_page(run_id)
            await page.close()

    future = get_loop().submit(close())
    try:
        future.result(timeout=CLOSE_S)
    except (TimeoutError, CancelledError):
        log.warning("a held page did not close in time", extra={"runId": run_id})
