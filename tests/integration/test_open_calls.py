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

import pytest

from decisions.audit.record import AuditEvent
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runners.tools.base import ToolCall, ToolContext, ToolResult
from runs.direct_calls.calls import call_tool
from runs.direct_calls.request import DirectCallRequest
from runs.lifecycle import in_flight_calls
from runs.models import OpenCall, Run
from runs.queue import lease_expiry
from runs.queue.lease_expiry import end_leases_of_worker
from runs.queue.leases import Lease, release_lease
from runs.scheduler.jobs import Scheduler
from runs.submission.services import cancel_run, submit_run
from runs.worker.worker import WorkerProcess
from tests.integration.racing import at_once
from tests.integration.workers import error_of, fresh, must_take
from tests.support.waiting import wait_until

pytest_plugins = ["tests.support.workspace_fixtures"]

Submit = Callable[..., str]
PREVIEW = {"path": "game/scene/new.txt", "content": "a:b;\n", "dryRun": True}
CHILD = """
import time
from decisions.infra.processes import process_identity
print(process_identity(), flush=True)
time.sleep(600)
"""
CALLS = ("tool.called", "tool.succeeded", "tool.failed")


def told() -> list[tuple[str, Any, Any]]:
    """Return the audit events of calls, oldest first: action, code and effect."""
    rows = AuditEntry.objects.filter(action__in=CALLS).order_by("id")
    return [(row.action, row.metadata.get("code"), row.metadata.get("effect")) for row in rows]


def cut(code: str) -> list[tuple[str, Any, Any]]:
    """Return the audit events of a call that started and was interrupted."""
    return [("tool.called", None, None), ("tool.failed", code, "unknown")]


def opening(about: str = "write_to_file") -> AuditEvent:
    return AuditEvent(
        "tool.called", "local", "tool", about, "local", "local", {"argsDigest": "d" * 64}
    )


def open_one(held: Lease) -> bool:
    return in_flight_calls.start_run_call(f"call_{held.epoch}", opening(), held.run)


@pytest.fixture
def hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace every tool call by one that never ends."""

    async def hang(call: ToolCall, ctx: ToolContext) -> ToolResult:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr("runs.execution.step_context.invoke", hang)


@pytest.fixture
def submit_calls(principal: Principal, project: Path, hangs: None) -> Callable[..., str]:
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
    working = in_background(worker.work)
    wait_until(OpenCall.objects.exists)
    assert cancel_run(principal=principal, run_id=run_id)["success"]
    assert told() == cut("RUN_CANCELED")
    working.join(60)
    assert (told(), OpenCall.objects.count()) == (cut("RUN_CANCELED"), 0)
    begun, ended = (row.metadata["callId"] for row in AuditEntry.objects.filter(action__in=CALLS))
    assert begun == ended


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
    assert [action for action, *_ in told()] == ["tool.called", "tool.succeeded"]
    assert not OpenCall.objects.exists()


def test_the_timeout_of_a_run_ends_the_call_in_flight(
    submit_calls: Callable[..., str], worker: WorkerProcess
) -> None:
    run_id = submit_calls(timeoutMs=12_000)
    worker.work()
    assert error_of(fresh(run_id))["errorCode"] == "RUN_TIMEOUT"
    assert (told(), OpenCall.objects.count()) == (cut("RUN_TIMEOUT"), 0)


def test_a_stopping_worker_ends_the_calls_it_interrupts(submit: Submit) -> None:
    submit()
    held = must_take("w1")
    assert open_one(held)
    assert release_lease(held, reason="draining", active_ms=1)
    assert (told(), OpenCall.objects.count()) == (cut("interrupted"), 0)


def test_the_calls_of_a_lost_worker_are_ended_and_it_starts_no_more(submit: Submit) -> None:
    run_id = submit()
    held = must_take("w1")
    assert open_one(held)
    end_leases_of_worker("w1", beat=0, reason="test")
    assert told() == cut("WORKER_LOST")
    assert not in_flight_calls.start_run_call("call_late", opening(), held.run)
    assert (told(), OpenCall.objects.count()) == (cut("WORKER_LOST"), 0)
    assert fresh(run_id).status == "running"


def test_the_third_loss_of_a_worker_ends_the_call_as_well(submit: Submit) -> None:
    run_id = submit()
    Run.objects.filter(id=run_id).update(times_lost=lease_expiry.MAX_TIMES_LOST - 1)
    assert open_one(must_take("w1"))
    end_leases_of_worker("w1", beat=0, reason="test")
    assert fresh(run_id).status == "failed"
    assert (told(), OpenCall.objects.count()) == (cut("WORKER_LOST"), 0)


def test_a_refused_transition_ends_no_call(submit: Submit) -> None:
    submit()
    held = must_take("w1")
    assert open_one(held)
    assert not release_lease(replace(held, worker_id="w2"), reason="draining", active_ms=1)
    assert (len(told()), OpenCall.objects.count()) == (1, 1)


def test_a_worker_whose_run_was_canceled_starts_no_call(
    submit_calls: Callable[..., str],
    principal: Principal,
    worker: WorkerProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_id = submit_calls()

    def cancel_first(*asked: Any, **known: Any) -> bool:
        cancel_run(principal=principal, run_id=run_id)
        return in_flight_calls.start_run_call(*asked, **known)

    monkeypatch.setattr("runs.execution.admission.start_run_call", cancel_first)
    worker.work()
    assert (told(), fresh(run_id).status) == ([], "canceled")


def test_a_cancel_concurrent_with_a_start_leaves_no_call_in_flight(
    submit: Submit, principal: Principal
) -> None:
    for _ in range(5):
        run_id = submit()
        held = must_take("w1")
        at_once([partial(open_one, held), partial(cancel_run, principal=principal, run_id=run_id)])
        assert not OpenCall.objects.exists()
        assert len(told()) % 2 == 0


@pytest.fixture
def ended_process() -> str:
    """Return the identity of a killed process of this machine."""
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    mark = child.stdout.readline().strip()
    child.kill()
    child.wait()
    child.stdout.close()
    return mark


@pytest.mark.usefixtures("db")
def test_the_scheduler_ends_direct_calls_of_a_killed_process(ended_process: str) -> None:
    for name in ("dead", "alive"):
        in_flight_calls.start_direct_call(f"call_{name}", opening())
    in_flight_calls.start_direct_call("call_reads", opening("read_file"))
    OpenCall.objects.exclude(id="call_alive").update(process=ended_process)
    assert in_flight_calls.abort_stale_calls() == 2
    assert told()[3:] == [
        ("tool.failed", "interrupted", "unknown"),
        ("tool.failed", "interrupted", None),
    ]
    assert list(OpenCall.objects.values_list("id", flat=True)) == ["call_alive"]
    assert in_flight_calls.abort_stale_calls() == 0


@pytest.mark.usefixtures("db")
def test_a_direct_call_on_another_machine_is_aborted_after_an_hour() -> None:
    in_flight_calls.start_direct_call("call_x", opening())
    OpenCall.objects.update(process="elsewhere:1:1:1")
    assert in_flight_calls.abort_stale_calls() == 0
    OpenCall.objects.update(opened_at=datetime.now(UTC) - timedelta(hours=2))
    assert in_flight_calls.abort_stale_calls() == 1
    done = AuditEvent("tool.succeeded", "local", "tool", "write_to_file", "local", "local")
    assert not in_flight_calls.finish_direct_call(
        "call_x", done
    )  # the call ended after all, but too late
    assert told() == cut("interrupted")


@pytest.mark.django_db(transaction=True)
def test_concurrent_attempts_end_a_call_once(principal: Principal) -> None:
    done = AuditEvent("tool.succeeded", "local", "tool", "write_to_file", "local", "local")
    in_flight_calls.start_direct_call("call_x", opening())
    OpenCall.objects.update(opened_at=datetime.now(UTC) - timedelta(hours=2))
    at_once(
        [
            in_flight_calls.abort_stale_calls,
            partial(in_flight_calls.finish_direct_call, "call_x", done),
        ]
        * 4
    )
    assert len(told()) == 2


def test_a_finished_direct_call_leaves_no_call_in_flight(
    project: Path, principal: Principal
) -> None:
    async def both() -> None:
        await call_tool(principal=principal, request=DirectCallRequest("write_to_file", PREVIEW))
        await call_tool(principal=principal, request=DirectCallRequest("list_files", {"path": "."}))

    asyncio.run(both())
    assert [action for action, *_ in told()] == ["tool.called", "tool.succeeded"] * 2
    assert not OpenCall.objects.exists()


def test_the_scheduler_runs_the_check_of_stale_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scheduler()
    looked: list[object] = []

    def note(duty: object) -> None:
        looked.append(duty)
        scheduler.stopping.set()

    monkeypatch.setattr(scheduler, "_run_job", note)
    scheduler.run()
    assert in_flight_calls.abort_stale_calls in looked
