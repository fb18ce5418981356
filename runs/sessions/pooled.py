"""The sessions that a worker holds open between runs: closed ones dropped, idle ones let go."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any

from django.conf import settings

from runners.browser.pool.pooled_sessions import SessionPool, get_session_pool
from runners.browser_sessions import open_in_worker, save_state
from runners.invocation.event_loop import get_loop
from runs.lifecycle.session_lease import release_session, run_using

ANSWER_S = 8.0
log = logging.getLogger(__name__)
Idle = dict[str, float | None]  # seconds without a run, by session; None: a run uses it


def close_unused_sessions(worker_id: str) -> None:
    """Close the pages of sessions that are not this worker's any more (closed, or taken over), and
    those that idled for SESSION_LIVE_IDLE_S or are too many.

    Asks the database only where sessions are open here.
    """
    idle = _idle_by_session()
    if not idle:
        return
    ours = open_in_worker(worker_id, idle)
    for session_id in idle.keys() - ours:
        _drop(session_id)
    unused = [one for one, seconds in idle.items() if one in ours and seconds is not None]
    too_many = max(0, len(unused) - settings.MAX_LIVE_SESSIONS)
    for place, session_id in enumerate(unused):
        if place < too_many or (idle[session_id] or 0) > settings.SESSION_LIVE_IDLE_S:
            _let_go(session_id, worker_id)


def save_all(worker_id: str) -> None:
    """Keep what every session without a run is now: the worker ends."""
    for session_id, seconds in _idle_by_session().items():
        if seconds is not None:
            _save(session_id, worker_id)


def _idle_by_session() -> Idle:
    return (_ask(_idle) or {}) if len(get_session_pool()) else {}


async def _idle(kept: SessionPool) -> Idle:
    """Return the open sessions, the one idle longest first."""
    return {session_id: kept.idle_s(session_id) for session_id in kept.ids()}


def _let_go(session_id: str, worker_id: str) -> None:
    """Save a session, leave it to any worker, and only then close its pages: a run that comes
    between finds it open.
    """
    if run_using(session_id) is not None:
        return  # a run that waits has it
    _save(session_id, worker_id)
    if release_session(session_id, worker_id):
        log.info("an idle session is closed here", extra={"sessionId": session_id})
        _drop(session_id)


def _drop(session_id: str) -> None:
    _ask(lambda kept: kept.drop(session_id))


def _save(session_id: str, worker_id: str) -> None:
    state = _ask(lambda kept: kept.read_state(session_id))
    if state is not None:
        save_state(session_id, worker_id=worker_id, storage=state[0], urls=state[1])


def _ask(question: Callable[[SessionPool], Coroutine[Any, Any, Any]]) -> Any:
    """Do it on the loop; None when the loop does not answer in time."""

    async def answer() -> Any:
        return await question(get_session_pool())

    future = get_loop().submit(answer())
    try:
        return future.result(timeout=ANSWER_S)
    except (TimeoutError, CancelledError):
        future.cancel()
        return None
