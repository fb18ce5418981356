"""Wait for a run or for its next events without holding a thread or a database connection; for the
asynchronous transports (REST, MCP).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from decisions.foundation.infra.ids import new_id
from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal
from runs.events.types import FINAL, EventType
from runs.models import TERMINAL, Run
from runs.queries import runs
from runs.streaming.event_log import EventLog
from runs.streaming.hub import get_hub
from runs.streaming.subscriber import Event
from runs.streaming.watcher import Watcher
from runs.submission import submit
from runs.submission.submit import PendingMessage
from runs.submission.submitted_run import SubmittedRun

WAIT_MAX_MS = 55_000  # below the 60 s after which many MCP clients and proxies give up
AUTO_WAIT_S = WAIT_MAX_MS / 1000
# Events that end a wait for a run, and those that change its progress.
_STOPS: frozenset[str] = FINAL | {EventType.RUN_WAITING}
_STEPS: frozenset[str] = frozenset(
    {EventType.RUN_STARTED, EventType.RUN_RESUMED, EventType.STEP_SUCCEEDED, EventType.STEP_FAILED}
)
Progress = Callable[[int, int, str], Awaitable[None]]  # done steps, total steps, current activity


async def _no_progress(done: int, total: int, message: str) -> None:
    return None


async def wait_run(
    *,
    principal: Principal,
    run_id: str,
    wait_s: float,
    progress: Progress = _no_progress,
    stops_at_waiting: bool = True,
) -> dict[str, Any]:
    """Return the Run once it is terminal or waits for a person; after `wait_s` as it is then.

    Args:
        stops_at_waiting: if false, wait also while the run waits for a person.

    Raises:
        RunNotFound: As `selectors.get_run`.
    """
    until = time.monotonic() + wait_s
    async with get_hub().watch(run_id, _awaited(progress)) as followed:
        row = await in_thread(runs.get_run_row, principal=principal, run_id=run_id)
        return await _wait(
            followed,
            row,
            principal=principal,
            until=until,
            progress=progress,
            stops_at_waiting=stops_at_waiting,
        )


def _awaited(progress: Progress) -> frozenset[str]:
    return _STOPS if progress is _no_progress else _STOPS | _STEPS


async def _wait(
    followed: tuple[EventLog, Watcher],
    row: Run,
    *,
    principal: Principal,
    until: float,
    progress: Progress,
    stops_at_waiting: bool = True,
) -> dict[str, Any]:
    """Wait as `wait_run`, from a row that was read or written since the run is followed."""
    log, watcher = followed
    run, seq = runs.run_object(row, []), row.last_seq
    is_whole = False  # its artifacts, and its place in the queue, are read with the answer
    while run["status"] not in TERMINAL and not (stops_at_waiting and "waitingFor" in run):
        left = until - time.monotonic()
        if watcher.is_closed or left <= 0:
            break
        watcher.mark_read(seq)
        steps = run["progress"]
        await progress(steps["doneSteps"], steps["totalSteps"], run["status"])
        event_seq = await watcher.wait(left)
        if is_whole := event_seq is not None:
            run, seq = await _read_run(log, principal, row.id, event_seq)
    return run if is_whole else await in_thread(runs.get_run, principal=principal, run_id=row.id)


async def _read_run(
    log: EventLog, principal: Principal, run_id: str, event_seq: int
) -> tuple[dict[str, Any], int]:
    """Read the run, once for all watchers that the same event woke."""

    async def read() -> tuple[dict[str, Any], int]:
        return await in_thread(runs.get_run_and_seq, principal=principal, run_id=run_id)

    key = principal.workspace_id, event_seq
    run, seq = await log.read_once(key, read)
    if seq < event_seq:  # read before the event, because all had to read the database
        log.forget_read(key)
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
    """Return the events after `after` as soon as there is one; none after `wait_s`.

    Args:
        read: reads a page of another log than a run's, such as a task's.

    Raises:
        RunNotFound: As `selectors.list_events`.
    """
    until = time.monotonic() + wait_s
    read_page = partial(read or runs.list_events_and_seq, principal=principal, run_id=run_id)
    async with get_hub().subscribe(run_id) as (_, subscriber):
        is_reported = False
        while True:
            if subscriber.is_behind:
                page, log_seq = await in_thread(
                    partial(read_page, after=after, limit=limit, max_bytes=max_bytes)
                )
                if page["events"] or page["terminal"]:
                    return page
                subscriber.mark_read(after, log_seq=log_seq)
                continue
            if batches := subscriber.take():
                events = [event for one in batches for event in one.events][:limit]
                return _page_of(runs.take_within_bytes(events, max_bytes))
            left = until - time.monotonic()
            if left <= 0 or subscriber.is_closed:
                return page
            if not is_reported:
                is_reported = True
                await progress(0, 0, "waiting for the next event")
            await subscriber.wait(left)


def _page_of(events: list[Event]) -> dict[str, Any]:
    last = events[-1]
    return {"events": events, "lastSeq": last["seq"], "terminal": last["type"] in FINAL}


async def submit_and_wait(
    *,
    principal: Principal,
    call: dict[str, Any],
    progress: Progress = _no_progress,
    message: PendingMessage | None = None,
) -> dict[str, Any]:
    """Submit a run and answer as its mode requires: the handle at once, or the terminal Run (S0
    §4.1).

    `call` is a valid RUN_TASK_TEMPLATE_INPUT. A sync call, also a duplicate of one, blocks until
    the run is terminal or waits for a person, or until its timeoutMs have passed. An auto call
    blocks for AUTO_WAIT_S at most and then answers as async.

    Args:
        message: the message of a task that the run answers.
    """
    run_id = new_id("run_")
    submitting = partial(
        submit.submit_run,
        principal=principal,
        template_id=call["templateId"],
        inputs=call["inputs"],
        session_id=call.get("sessionId"),
        options=call.get("options"),
        message=message,
        run_id=run_id,
    )
    if (call.get("options") or {}).get("mode") == "async":
        return await _answer(await in_thread(submitting), None, principal, progress)
    # Followed from before the submit, so that it needs no read to miss no event.
    async with get_hub().watch(run_id, _awaited(progress)) as followed:
        return await _answer(await in_thread(submitting), followed, principal, progress)


async def _answer(
    submitted: SubmittedRun,
    followed: tuple[EventLog, Watcher] | None,
    principal: Principal,
    progress: Progress,
) -> dict[str, Any]:
    handle, row = submitted.as_dict(), submitted.run
    if row.mode == "async":
        return handle
    principal.require("runs:read")
    # Slightly longer than the run's own timeout, so that the caller reads how the run ended.
    wait_s = AUTO_WAIT_S if submitted.is_auto_mode else row.timeout_ms / 1000 + 2
    if followed is None or submitted.deduplicated:
        run = await wait_run(principal=principal, run_id=row.id, wait_s=wait_s, progress=progress)
    else:
        until = time.monotonic() + wait_s
        run = await _wait(followed, row, principal=principal, until=until, progress=progress)
    if submitted.is_auto_mode and run["status"] not in TERMINAL and "waitingFor" not in run:
        await in_thread(submit.mark_async, row.id)
        return handle | {"status": run["status"], "mode": "async"}
    return run | {
        name: handle[name] for name in ("mode", "deduplicated", "inputsMatch") if name in handle
    }
