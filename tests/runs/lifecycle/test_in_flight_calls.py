"""The end of a started call is audited exactly once, whatever interrupted the call: a cancel, the
run's timeout, a lost worker, or a killed process.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import InternalError

from decisions.audit.record import AuditEvent
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runners.tools.base import ToolCall, ToolContext, ToolResult
from runs.calls import record as call_record
from runs.calls import start
from runs.calls.direct.call import call_tool
from runs.calls.request import DirectCallRequest
from runs.lifecycle import in_flight_calls
from runs.lifecycle.lease import Lease
from runs.models import OpenCall, Run
from runs.queue import lease_expiry
from runs.queue.lease_expiry import end_leases_of_worker
from runs.queue.leases import release_lease
from runs.scheduler.jobs import Scheduler
from runs.submission.cancel import cancel_run
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.waiting import wait_until
from tests.support.runs.worker_rows import error_of, fresh, must_take

Submit = Callable[..., str]
PREVIEW = {"path": "game/scene/new.txt", "content": "a:b;\n", "dryRun": True}
CHILD = """
import time
from decisions.foundation.infra.processes import process_identity
print(process_identity(), flush=True)
time.sleep(600)
"""
CALLS = ("tool.called", "tool.succeeded", "tool.failed")


def audited_calls() -> list[tuple[str, Any, Any]]:
    """Return the audit events of calls, oldest first: action, code and effect."""
    rows = AuditEntry.objects.filter(action__in=CALLS).order_by("id")
    return [(row.action, row.metadata.get("code"), row.metadata.get("effect")) for row in rows]


def aborted(code: str) -> list[tuple[str, Any, Any]]:
    """Return the audit events of a call that started and was interrupted."""
    return [("tool.called", None, None), ("tool.failed", code, "unknown")]


def started_event(resource_id: str = "write_to_file") -> AuditEvent:
    return AuditEvent(
        "tool.called", "local", "tool", resource_id, "local", "local", {"argsDigest": "d" * 64}
    )


def start_call(lease: Lease) -> bool:
    return start.start_call(f"call_{lease.epoch}", started_event(), run=lease.run)


@pytest.fixture
def hanging_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace every tool call by one that never ends."""

    async def never_return(call: ToolCall, ctx: ToolContext) -> ToolResult:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr("runs.calls.step_call.invoke", never_return)


@pytest.fixture
def submit_calls(principal: Principal, project: Path, hanging_tools: None) -> Callable[..., str]:
    """Submit a run with one call that never ends."""

    def make(**options: Any) -> str:
        return submit_run(
            principal=principal,
            template_id="call_tools",
            inputs={"calls": [{"name": "write_to_file", "args": PREVIEW}]},
            options={"mode": "async", **options},
        ).run_id

    return make


def test_a_cancel_ends_the_call_in_flight(
    submit_calls: Callable[..., str],
    worker: WorkerProcess,
    principal: Principal,
    in_background: Callable[..., Any],
) -> None:
    run_id = submit_calls()
    thread = in_background(worker.work)
    wait_until(OpenCall.objects.exists)
    assert cancel_run(principal=principal, run_id=run_id)["success"]
    assert audited_calls() == aborted("RUN_CANCELED")
    thread.join(60)
    assert (audited_calls(), OpenCall.objects.count()) == (aborted("RUN_CANCELED"), 0)
    started, ended = (row.metadata["callId"] for row in AuditEntry.objects.filter(action__in=CALLS))
    assert started == ended


def test_a_call_that_ended_before_the_cancel_is_audited_once(
    project: Path, worker: WorkerProcess, principal: Principal
) -> None:
    run_id = submit_run(
        principal=principal,
        template_id="call_tools",
        inputs={"calls": [{"name": "write_to_file", "args": PREVIEW}]},
        options={"mode": "async"},
    ).run_id
    worker.work()
    cancel_run(principal=principal, run_id=run_id)
    assert [action for action, *_ in audited_calls()] == ["tool.called", "tool.succeeded"]
    assert not OpenCall.objects.exists()


@pytest.mark.slow
def test_the_timeout_of_a_run_ends_the_call_in_flight(
    submit_calls: Callable[..., str], worker: WorkerProcess
) -> None:
    run_id = submit_calls(timeoutMs=12_000)
    worker.work()
    assert error_of(fresh(run_id))["errorCode"] == "RUN_TIMEOUT"
    assert (audited_calls(), OpenCall.objects.count()) == (aborted("RUN_TIMEOUT"), 0)


def test_a_stopping_worker_ends_the_calls_it_interrupts(submit: Submit) -> None:
    submit()
    lease = must_take("w1")
    assert start_call(lease)
    assert release_lease(lease, reason="draining", active_ms=1)
    assert (audited_calls(), OpenCall.objects.count()) == (aborted("interrupted"), 0)


def test_the_calls_of_a_lost_worker_are_ended_and_it_starts_no_more(submit: Submit) -> None:
    run_id = submit()
    lease = must_take("w1")
    assert start_call(lease)
    end_leases_of_worker("w1", beat=0, reason="test")
    assert audited_calls() == aborted("WORKER_LOST")
    assert not start.start_call("call_late", started_event(), run=lease.run)
    assert (audited_calls(), OpenCall.objects.count()) == (aborted("WORKER_LOST"), 0)
    assert fresh(run_id).status == "running"


def test_the_third_loss_of_a_worker_ends_the_call_as_well(submit: Submit) -> None:
    run_id = submit()
    Run.objects.filter(id=run_id).update(losses_without_progress=lease_expiry.MAX_TIMES_LOST - 1)
    assert start_call(must_take("w1"))
    end_leases_of_worker("w1", beat=0, reason="test")
    assert fresh(run_id).status == "failed"
    assert (audited_calls(), OpenCall.objects.count()) == (aborted("WORKER_LOST"), 0)


def test_a_refused_transition_ends_no_call(submit: Submit) -> None:
    submit()
    lease = must_take("w1")
    assert start_call(lease)
    assert not release_lease(replace(lease, worker_id="w2"), reason="draining", active_ms=1)
    assert (len(audited_calls()), OpenCall.objects.count()) == (1, 1)


def test_a_worker_whose_run_was_canceled_starts_no_call(
    submit_calls: Callable[..., str],
    principal: Principal,
    worker: WorkerProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_id = submit_calls()

    def cancel_first(*args: Any, **kwargs: Any) -> bool:
        cancel_run(principal=principal, run_id=run_id)
        return start.start_call(*args, **kwargs)

    monkeypatch.setattr("runs.calls.step_start.start_call", cancel_first)
    worker.work()
    assert (audited_calls(), fresh(run_id).status) == ([], "canceled")


def test_a_cancel_concurrent_with_a_start_leaves_no_call_in_flight(
    submit: Submit, principal: Principal
) -> None:
    for _ in range(5):
        run_id = submit()
        lease = must_take("w1")
        at_once(
            [partial(start_call, lease), partial(cancel_run, principal=principal, run_id=run_id)]
        )
        assert not OpenCall.objects.exists()
        assert len(audited_calls()) % 2 == 0


@pytest.fixture
def ended_process() -> str:
    """Return the identity of a killed process of this machine."""
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    identity = child.stdout.readline().strip()
    child.kill()
    child.wait()
    child.stdout.close()
    return identity


@pytest.mark.usefixtures("db")
def test_the_scheduler_ends_direct_calls_of_a_killed_process(ended_process: str) -> None:
    for name in ("dead", "alive"):
        start.start_call(f"call_{name}", started_event())
    start.start_call("call_reads", started_event("read_file"))
    OpenCall.objects.exclude(id="call_alive").update(process=ended_process)
    assert in_flight_calls.abort_stale_calls() == 2
    assert audited_calls()[3:] == [
        ("tool.failed", "interrupted", "unknown"),
        ("tool.failed", "interrupted", None),
    ]
    assert list(OpenCall.objects.values_list("id", flat=True)) == ["call_alive"]
    assert in_flight_calls.abort_stale_calls() == 0


@pytest.mark.usefixtures("db")
def test_a_direct_call_on_another_machine_is_aborted_after_an_hour() -> None:
    start.start_call("call_x", started_event())
    OpenCall.objects.update(process="elsewhere:1:1:1")
    assert in_flight_calls.abort_stale_calls() == 0
    OpenCall.objects.update(opened_at=datetime.now(UTC) - timedelta(hours=2))
    assert in_flight_calls.abort_stale_calls() == 1
    succeeded = AuditEvent("tool.succeeded", "local", "tool", "write_to_file", "local", "local")
    assert not call_record.end_call("call_x", succeeded)  # the call ended after all, but too late
    assert audited_calls() == aborted("interrupted")


@pytest.mark.django_db(transaction=True)
def test_concurrent_attempts_end_a_call_once(principal: Principal) -> None:
    succeeded = AuditEvent("tool.succeeded", "local", "tool", "write_to_file", "local", "local")
    start.start_call("call_x", started_event())
    OpenCall.objects.update(opened_at=datetime.now(UTC) - timedelta(hours=2))
    at_once(
        [
            in_flight_calls.abort_stale_calls,
            partial(call_record.end_call, "call_x", succeeded),
        ]
        * 4
    )
    assert len(audited_calls()) == 2


def test_a_finished_direct_call_leaves_no_call_in_flight(
    project: Path, principal: Principal
) -> None:
    async def make_calls() -> None:
        await call_tool(principal=principal, request=DirectCallRequest("write_to_file", PREVIEW))
        await call_tool(principal=principal, request=DirectCallRequest("list_files", {"path": "."}))

    asyncio.run(make_calls())
    assert [action for action, *_ in audited_calls()] == ["tool.called", "tool.succeeded"] * 2
    assert not OpenCall.objects.exists()


@pytest.mark.parametrize("was_committed", [False, True])
def test_the_end_of_a_direct_call_is_recorded_once_the_database_takes_writes(
    project: Path, principal: Principal, monkeypatch: pytest.MonkeyPatch, was_committed: bool
) -> None:
    write, errors = call_record._write_end, ["25006", "57P01"]

    def refuse() -> None:
        if errors:
            raise InternalError("refused") from psycopg.errors.lookup(errors.pop())()

    def write_end(*args: Any) -> None:
        if not was_committed:
            refuse()
        write(*args)
        refuse()

    monkeypatch.setattr(call_record, "_write_end", write_end)
    monkeypatch.setattr(call_record, "RETRY_S", 0.01)
    request = DirectCallRequest("write_to_file", PREVIEW, key="k")
    answers = [asyncio.run(call_tool(principal=principal, request=request)) for _ in range(2)]
    assert answers[0] == answers[1]
    assert [action for action, *_ in audited_calls()] == ["tool.called", "tool.succeeded"]
    assert not OpenCall.objects.exists()


def test_the_scheduler_runs_the_check_of_stale_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scheduler()
    jobs: list[object] = []

    def record_job(job: object) -> None:
        jobs.append(job)
        scheduler.stopping.set()

    monkeypatch.setattr(scheduler, "_run_job", record_job)
    scheduler.run()
    assert in_flight_calls.abort_stale_calls in jobs
