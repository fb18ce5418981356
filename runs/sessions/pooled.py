"""The named sessions that a worker keeps open between runs: close and save them."""

from __future__ import annotations

import logging

from django.conf import settings

from runners.browser.pool.pooled_sessions import get_session_pool
from runners.browser_sessions import open_in_worker, save_state
from runners.invocation.event_loop import get_loop
from runs.queue.session_lease import release_session, run_using

MAX_LIVE_SESSIONS = 20  # of a worker, without a run
LOOP_TIMEOUT_S = 8.0
log = logging.getLogger(__name__)
IdleSeconds = dict[str, float | None]  # by session, the one idle longest first; None: in use


def close_unused_sessions(worker_id: str) -> None:
    """Close sessions that this worker no longer owns (closed by a caller, or taken by another
    worker), that were idle for SESSION_LIVE_IDLE_S, or that exceed MAX_LIVE_SESSIONS.

    Queries the database only if sessions are open in this process.
    """
    idle = _idle_seconds()
    if not idle:
        return
    owned = open_in_worker(worker_id, idle)
    for session_id in idle.keys() - owned:
        _drop(session_id)
    unused = [one for one, seconds in idle.items() if one in owned and seconds is not None]
    excess = max(0, len(unused) - MAX_LIVE_SESSIONS)
    for position, session_id in enumerate(unused):
        if position < excess or (idle[session_id] or 0) > settings.SESSION_LIVE_IDLE_S:
            _release(session_id, worker_id)


def save_all(worker_id: str) -> None:
    """Save the state of every session that no run uses, before the worker ends."""
    for session_id, seconds in _idle_seconds().items():
        if seconds is not None:
            _save(session_id, worker_id)


def _idle_seconds() -> IdleSeconds:
    if not len(get_session_pool()):
        return {}
    return get_loop().run(_read_idle(), LOOP_TIMEOUT_S) or {}


async def _read_idle() -> IdleSeconds:
    pool = get_session_pool()
    return {session_id: pool.idle_s(session_id) for session_id in pool.ids()}


def _release(session_id: str, worker_id: str) -> None:
    """Save a session, release it to any worker, and only then close its pages: a run that claims it
    in between finds it open.
    """
    if run_using(session_id) is not None:
        return  # a suspended run uses it
    _save(session_id, worker_id)
    if release_session(session_id, worker_id):
        log.info("an idle session is closed on this worker", extra={"sessionId": session_id})
        _drop(session_id)


def _drop(session_id: str) -> None:
    get_loop().run(get_session_pool().drop(session_id), LOOP_TIMEOUT_S)


def _save(session_id: str, worker_id: str) -> None:
    state = get_loop().run(get_session_pool().read_state(session_id), LOOP_TIMEOUT_S)
    if state is not None:
        save_state(session_id, worker_id=worker_id, storage=state[0], urls=state[1])
