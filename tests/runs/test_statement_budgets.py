"""The number of database statements of the paths that every run takes, and of calls over REST.

All statements count, BEGIN and COMMIT too, but those that set up a new connection. `BUDGETS` has
what each path may take; docs/performance.md says what each statement of a run is for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

from decisions.foundation.infra.threads import in_long_thread, in_thread
from decisions.identity.principals import Principal
from runs.calls.direct.call import call_tool
from runs.calls.request import DirectCallRequest
from runs.journal import writer
from runs.models import Run, RunStatus
from runs.queue import leases
from runs.streaming import hub
from runs.streaming.long_poll import submit_and_wait, wait_run
from runs.worker.worker import WorkerProcess
from tests.support.rest.rest import submission
from tests.support.runs.event_streams import Stream, reading, tell, until

Submit = Callable[..., str]
Counted = Callable[..., Any]
BUDGETS = {  # on PostgreSQL, on SQLite
    "submit": (1, 8),
    "claim": (2, 9),
    "step": (1, 7),
    "end": (1, 8),
    "answer": (1, 1),
    "wait": (2, 2),
    "idle look": (2, 2),
    "tool call": (10, 14),
    "event": (1, 1),
    "rest: submit with a key": (2, 10),
    "rest: read": (2, 2),
    "rest: list": (4, 4),
    "rest: chunk": (2, 2),
    "rest: refused token": (1, 1),
}
SET_UP = ("SELECT set_config('TimeZone'", "SET lock_timeout", "PRAGMA")
RUN = ("submit", "claim", "end", "answer", "idle look")  # of a trivial run that a caller waits for


def budget(name: str) -> int:
    """Return how many statements a path may take on this database."""
    return BUDGETS[name][connection.vendor != "postgresql"]


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Compare the statements of a block with the sum of budgets: `with counting("claim"): …`."""
    seen: list[tuple[str, str]] = []

    def note(sql: str) -> None:
        if not sql.startswith(SET_UP):
            seen.append((threading.current_thread().name, sql))

    _record(monkeypatch, note)

    @contextmanager
    def count(*names: str, threads: str = "MainThread") -> Iterator[None]:
        seen.clear()
        yield
        found = [sql for thread, sql in seen if thread.startswith(threads)]
        assert 0 < len(found) <= sum(map(budget, names)), found

    return count


def _record(monkeypatch: pytest.MonkeyPatch, note: Callable[[str], None]) -> None:
    is_postgresql = connection.vendor == "postgresql"
    places: list[tuple[Any, str]] = [(BaseDatabaseWrapper, "_commit"), (CursorWrapper, "execute")]
    places += [(CursorWrapper, "executemany")]
    if is_postgresql:  # where the prepared statements, BEGIN and COMMIT pass too
        places = [(psycopg.Cursor, "execute"), (psycopg.Connection, "_exec_command")]
    for owner, name in places:
        original = getattr(owner, name)

        def watched(self: Any, *args: Any, original: Any = original, **options: Any) -> Any:
            note(str(args[0]) if args else "COMMIT")
            return original(self, *args, **options)

        monkeypatch.setattr(owner, name, watched)


@pytest.fixture
def idle(worker: WorkerProcess, submit: Submit) -> WorkerProcess:
    """A worker that executed a run before: rules are cached and connections are open."""
    submit()
    worker.work()
    return worker


def test_a_trivial_run_takes_at_most_seven_statements_on_postgresql() -> None:
    assert sum(BUDGETS[name][0] for name in RUN) <= 7


def test_a_run_is_submitted_claimed_and_ended_within_its_budget(
    idle: WorkerProcess, submit: Submit, counting: Counted
) -> None:
    with counting("submit"):
        submit()
    with counting("claim"):
        lease = leases.claim_run(idle.worker_id)
    assert lease is not None
    with counting("end"):
        ending = writer.Ending(RunStatus.SUCCEEDED, result={})
        writer.write(lease, [], active_ms=1, ending=ending)
    with counting("idle look"):
        assert idle.work() == 0


def test_each_step_of_a_run_takes_its_budget(
    idle: WorkerProcess, submit: Submit, counting: Counted
) -> None:
    submit(*["ok"] * 20)
    with counting("claim", *["step"] * 19, "end", "idle look"):  # the claim starts the first one
        assert idle.work() == 1


def test_the_answer_to_who_waits_for_a_run_takes_its_budget(
    idle: WorkerProcess, submit: Submit, principal: Principal, counting: Counted
) -> None:
    async def answer() -> str:
        run_id = await in_thread(submit)
        waiting = asyncio.create_task(wait_run(principal=principal, run_id=run_id, wait_s=30))
        await asyncio.sleep(0.1)
        await in_long_thread(idle.work)
        return str((await waiting)["status"])

    async def scenario() -> None:
        assert await answer() == "succeeded"  # subscribes to Redis
        run_id = await in_thread(submit)
        with counting("wait", threads="database"):
            waiting = asyncio.create_task(wait_run(principal=principal, run_id=run_id, wait_s=30))
            await in_long_thread(idle.work)
            assert (await waiting)["status"] == "succeeded"

    asyncio.run(scenario())


def test_the_answer_to_who_submits_and_waits_takes_its_budget(
    idle: WorkerProcess, principal: Principal, counting: Counted
) -> None:
    call = {"templateId": "test_stepwise", "inputs": {"do": ["ok"]}, "options": {"mode": "sync"}}

    async def answer() -> dict[str, Any]:
        waiting = asyncio.create_task(submit_and_wait(principal=principal, call=call))
        while not await in_long_thread(idle.work):
            await asyncio.sleep(0.05)
        return await waiting

    async def scenario() -> None:
        assert (await answer())["status"] == "succeeded"  # subscribes to Redis
        with counting("submit", "answer", threads="database"):
            assert (await answer())["status"] == "succeeded"

    asyncio.run(scenario())


def test_an_event_is_read_once_for_all_its_readers(
    submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch, counting: Counted
) -> None:
    monkeypatch.setattr(hub, "POLL_S", 60)
    run_id = submit()

    async def scenario() -> None:
        streams = [Stream(principal, run_id) for _ in range(5)]
        async with reading(streams):
            for seq in (2, 3):  # the first one when the hub has subscribed
                await in_long_thread(tell, run_id)
                await until(lambda seq=seq: all(seq in one.got for one in streams))  # type: ignore[misc]
            with counting("event", threads="database"):
                await in_long_thread(tell, run_id)
                await until(lambda: all(4 in one.got for one in streams))
            await in_thread(lambda: Run.objects.filter(id=run_id).delete())
            hub.get_hub().close()

    asyncio.run(scenario())


def test_a_direct_tool_call_takes_its_budget(
    principal: Principal, project: Path, counting: Counted
) -> None:
    request = DirectCallRequest("list_files", {"path": "."})

    def call() -> None:
        asyncio.run(call_tool(principal=principal, request=request))

    call()
    with counting("tool call", threads="database"):
        call()


def test_a_submit_over_rest_takes_its_budget(api: httpx.Client, counting: Counted) -> None:
    with counting("rest: submit with a key", threads="database"):
        assert api.post("/api/v1/runs", json=submission(idempotencyKey="k")).is_success


def test_reading_a_run_takes_its_budget(
    api: httpx.Client, make_run: Callable[..., Run], counting: Counted
) -> None:
    run = make_run(status="succeeded", result={})
    with counting("rest: read", threads="database"):
        assert api.get(f"/api/v1/runs/{run.id}").is_success


@pytest.mark.parametrize("count", [1, 20])
def test_a_list_takes_its_budget_however_long_it_is(
    api: httpx.Client,
    make_run: Callable[..., Run],
    make_artifact: Callable[..., str],
    counting: Counted,
    count: int,
) -> None:
    for _ in range(count):
        make_artifact(b"x", run_id=make_run(status="succeeded", result={}).id)
    # The token, the count (read from totals), the page, and its artifacts.
    with counting("rest: list", threads="database"):
        assert len(api.get("/api/v1/runs").json()["runs"]) == count


def test_a_chunk_takes_its_budget(
    api: httpx.Client, make_artifact: Callable[..., str], counting: Counted
) -> None:
    artifact_id = make_artifact(b"x")
    with counting("rest: chunk", threads="database"):
        assert api.get(f"/api/v1/artifacts/{artifact_id}").is_success


def test_a_refused_token_takes_its_budget(
    anonymous: httpx.Client, principal: object, counting: Counted
) -> None:
    bad = {"Authorization": "Bearer cty_unknown"}
    anonymous.get("/api/v1/runs", headers=bad)  # the first one of a minute writes an audit row
    with counting("rest: refused token", threads="database"):
        assert anonymous.get("/api/v1/runs", headers=bad).status_code == 401
