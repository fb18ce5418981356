"""Pages of runs that wait for a person: open in this process for as long as they may go on here.

Used on the loop thread, but for `close_left`.
"""

from __future__ import annotations

import logging
import os
from concurrent.futures import CancelledError
from dataclasses import dataclass

from django.conf import settings

from runners.browser.pool.pooled_sessions import CheckedOutSession, get_session_pool
from runners.browser.session.session import BrowserSession
from runners.invocation.event_loop import get_loop
from runs.models import Run, RunStatus, Task

CLOSE_S = 8.0
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HeldPage:
    """The session of a run that waits.

    Attributes:
        epoch: the run's while it waits; under a later one somebody goes on with it.
        session_id: of a named session, which is lent to the run all the while.
    """

    epoch: int
    session: BrowserSession
    session_id: str = ""
    lent: CheckedOutSession | None = None

    async def close(self) -> None:
        """Close the pages; a named session stays open for other runs."""
        if self.lent is not None:
            await get_session_pool().check_in(self.session_id, self.lent)
        else:
            await self.session.close()


_parked: dict[tuple[int, str], HeldPage] = {}


def can_hold_page() -> bool:
    """Tell whether one more page may stay open here; a person is asked about those that do, so none
    of them makes room.
    """
    return len(_parked) < int(settings.MAX_WAITING_PAGES)


def count_held_pages() -> int:
    """Return how many pages wait here."""
    return len(_parked)


def hold_page(run_id: str, parked: HeldPage) -> None:
    """Keep the session of a run that is about to wait."""
    _parked[os.getpid(), run_id] = parked


def take_held_page(run_id: str) -> HeldPage | None:
    """Return the session that was kept for a run that goes on, once."""
    return _parked.pop((os.getpid(), run_id), None)


def close_unneeded_pages(worker_id: str) -> None:
    """Close the pages of runs that ended while they waited, or that somebody else goes on with;
    this worker itself takes its own a moment after its claim. What a person has stays open.

    Asks the database only where there are some. From any thread.
    """
    waiting = {
        run_id: parked for (pid, run_id), parked in list(_parked.items()) if pid == os.getpid()
    }
    if not waiting:
        return
    known = Run.objects.filter(id__in=waiting)
    places = {run.id: run for run in known.only("id", "status", "epoch", "lease_owner", "task_id")}
    for run_id, parked in waiting.items():
        run = places.get(run_id)
        if run is None or not _is_wanted(run, parked, worker_id):
            _close(run_id, parked)


def _is_wanted(run: Run, parked: HeldPage, worker_id: str) -> bool:
    if run.status == RunStatus.RUNNING:
        return run.epoch <= parked.epoch or run.lease_owner == worker_id
    return run.task_id is not None and Task.objects.is_taken_over(run.task_id)


def _close(run_id: str, parked: HeldPage) -> None:
    async def close() -> None:
        if _parked.get((os.getpid(), run_id)) is parked:
            take_held_page(run_id)
            await parked.close()

    future = get_loop().submit(close())
    try:
        future.result(timeout=CLOSE_S)
    except (TimeoutError, CancelledError):
        log.warning("a page did not close in time", extra={"runId": run_id})
