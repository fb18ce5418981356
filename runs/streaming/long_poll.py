"""Waiting for runs without holding a thread or a database connection: for asynchronous doors
(mechanisms 19, 20).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from decisions.identity.principals import Principal
from decisions.infra.threads import in_thread
from runs.events.types import FINAL, EventType
from runs.models import TERMINAL
from runs.queries import runs
from runs.streaming.event_log import EventLog
from runs.streaming.hub import get_hub
from runs.streaming.subscriber import Event
from runs.submission import services
from runs.submission.validation import Submitted

WAIT_MAX_MS = 55_000  # no call but a sync run blocks longer (product.md, "MCP")
AUTO_WAIT_S = WAIT_MAX_MS / 1000
# Events at which a wait for a run may be over, and those that move its progress.
_STOPS: frozenset[str] = FINAL | {EventType.RUN_WAITING}
_STEPS: frozenset[str] = frozenset(
    {EventType.RUN_STARTED, EventType.RUN_RESUMED, EventType.STEP_SUCCEEDED, EventType.STEP_FAILED}
)
Progress = Callable[[int, int, str], Awaitable[None]]  # done steps, total steps, what is going on


async def _no_progress(done: int, total: int, message: str) -> None:
    return None


async def wait_run(
    *, principal: Principal, run_id: str, wait_s: float, progress: Progress = _no_progress
) -> dict[str, Any]:
    """Return the Run once it is terminal or waits for a person, or as it is when the time is up.

    Raises:
        RunNotFound: As `selectors.get_run`.
    """
    until = time.monotonic() + wait_s
    awaited = _STOPS if progress is _no_progress else _STOPS | _STEPS
    async with get_hub().watch(run_id, awaited) as (log, watcher):
        seen: int | None = None  # the event that made it worth looking at the run
        while True:
            run, seq = await _look(log, principal, run_id, seen)
            if run["status"] in TERMINAL or "waitingFor" in run:
                return run
            left = until - time.monotonic()
            if watcher.is_closed or left <= 0:
                return run
            watcher.has(seq)
            steps = run["progress"]
            await progress(steps["doneSteps"], steps["totalSteps"], run["status"])
            seen = await watcher.news(left)


async def _look(
    log: EventLog, principal: Principal, run_id: str, seen: int | None
) -> tuple[dict[str, Any], int]:
    """Read the run: for all who saw the same event, once."""

    async def read() -> tuple[dict[str, Any], int]:
        return await in_thread(runs.get_run_and_seq, principal=principal, run_id=run_id)

    if seen is None:
        return await read()
    run, seq = await log.once((principal.workspace_id, seen), read)
    return dict(run), seq


async def wait_events(
    *,
    principal: Principal,
    run_id: str,
    after: int = 0,
    wait_s: float = 0.0,
    limit: int = 100,
    max_bytes: int | None = None,
    progress: Progress = _no_progress,
    read: Callable[..., tuple[dict[str, Any], int]] | None = None,
) -> dict[str, Any]:
    """Return the events behind `after` as soon as there is one, or none when the time is up; with a
    `read` of its own, those of another log.

    Raises:
        RunNotFound: As `selectors.list_events`.
    """
    until = time.monotonic() + wait_s
    page_of = partial(read or runs.list_events_and_seq, principal=principal, run_id=run_id)
    async with get_hub().listen(run_id) as (_, listener):
        told = False
        while True:
            if listener.is_behind:
                page, reached = await in_thread(
                    partial(page_of, after=after, limit=limit, max_bytes=max_bytes)
                )
                if page["events"] or page["terminal"]:
                    return page
                listener.has(after, of=reached)
                continue
            if batches := listener.take():
                events = [event for one in batches for event in one.events][:limit]
                return _page_of(runs.first_ones(events, max_bytes))
            left = until - time.monotonic()
            if left <= 0 or listener.is_closed:
                return page
            if not told:
                told = True
                await progress(0, 0, "waiting for the next event")
            await listener.news(left)


def _page_of(events: list[Event]) -> dict[str, Any]:
    last = events[-1]
    return {"events": events, "lastSeq": last["seq"], "terminal": last["type"] in FINAL}


async def submit_and_wait(
    *, principal: Principal, call: dict[str, Any], progress: Progress = _no_progress
) -> dict[str, Any]:
    """Answer a submit as its mode wants: the handle at once, or the terminal Run (S0 §4.1).

    `call` is a valid RUN_TASK_TEMPLATE_INPUT. A sync call, also a duplicate of one, blocks until
    the run is terminal, waits for a person, or its timeoutMs are over; auto gives up after 55 s and
    answers async.
    """
    submitted: Submitted = await in_thread(
        services.submit_run,
        principal=principal,
        template_id=call["templateId"],
        inputs=call["inputs"],
        session_id=call.get("sessionId"),
        options=call.get("options"),
    )
    if submitted.mode == "async":
        return submitted.as_dict()
    # A moment more than the run itself has, so that its own end is what the caller reads.
    wait_s = AUTO_WAIT_S if submitted.asked_auto else submitted.timeout_ms / 1000 + 2
    run = await wait_run(
        principal=principal, run_id=submitted.run_id, wait_s=wait_s, progress=progress
    )
    if submitted.asked_auto and run["status"] not in TERMINAL and "waitingFor" not in run:
        await in_thread(services.stop_waiting, submitted.run_id)
        return submitted.as_dict() | {"status": run["status"], "mode": "async"}
    told = submitted.as_dict()
    return run | {
        name: told[name] for name in ("mode", "deduplicated", "inputsMatch") if name in told
    }
