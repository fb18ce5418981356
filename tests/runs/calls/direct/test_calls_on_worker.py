"""Direct calls that run on a worker: the response to the caller, and the audit events."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import ConfirmationRequired, Conflict
from decisions.foundation.infra.threads import in_long_thread, in_thread
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runners.invocation.invoke import invoke
from runners.invocation.workspace_errors import FailedCall
from runners.tools import registry
from runners.tools.base import ToolCall, ToolContext, ToolResult
from runs.calls.direct import call as direct_call
from runs.calls.direct.call import call_tool
from runs.calls.request import DirectCallRequest, DirectCallResult
from runs.models import OpenCall, Run, RunStep
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess

LONG = "game/scene/long.txt"
TIMEOUT_S = 60.0


@pytest.fixture
def file_tools_on_worker(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    """Run calls of file tools on a worker, as browser tools do; no browser is needed."""
    get_tool = registry.get_tool

    def get_tool_of_worker(name: str) -> Any:
        found = get_tool(name)
        return None if found is None else replace(found, uses_browser=True)

    monkeypatch.setattr(direct_call, "get_tool", get_tool_of_worker)


@pytest.fixture
def worker(principal: Principal) -> Iterator[None]:
    """Start a worker on a thread of its own that claims runs until the test ends."""
    stopped = threading.Event()

    def work() -> None:
        process = WorkerProcess()
        try:
            while not stopped.wait(0.05):
                process.work()
        finally:
            process.close()
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stopped.set()
    thread.join(TIMEOUT_S)


def call_direct(principal: Principal, name: str, **more: Any) -> DirectCallResult:
    """Make a direct call and return its result."""
    args = more.pop("args", {})
    return asyncio.run(
        call_tool(principal=principal, request=DirectCallRequest(name, args, **more))
    )


@pytest.mark.usefixtures("file_tools_on_worker", "worker")
@pytest.mark.parametrize("size", [10, 65_500, 400_000])
def test_the_caller_receives_the_complete_output(
    principal: Principal, project: Path, size: int
) -> None:
    (project / LONG).write_text("x" * size)
    result = call_direct(principal, "read_file", args={"path": LONG})
    assert result.run_id is not None
    assert result.output["content"] == "x" * size


def entry_metadata(action: str) -> list[dict[str, Any]]:
    """Return the metadata of the audit entries with this action."""
    rows = AuditEntry.objects.filter(action=action, resource_type="tool")
    return list(rows.values_list("metadata", flat=True))


async def start_call(principal: Principal) -> asyncio.Task[DirectCallResult]:
    """Start a direct call, wait until its run exists, and return the task."""
    request = DirectCallRequest("get_runtime_info")
    calling = asyncio.ensure_future(call_tool(principal=principal, request=request))
    async with asyncio.timeout(TIMEOUT_S):
        while not await in_thread(Run.objects.exists):
            await asyncio.sleep(0.02)
    return calling


def require_confirmation_and_work() -> None:
    create_rule(RuleFields("confirm", tool="get_runtime_info", reason="test"), actor="test")
    worker = WorkerProcess()
    worker.work()
    worker.close()


@pytest.mark.usefixtures("file_tools_on_worker")
def test_a_call_whose_run_waits_for_a_person_is_audited_as_failed(principal: Principal) -> None:
    async def call() -> None:
        calling = await start_call(principal)
        await in_long_thread(require_confirmation_and_work)
        with pytest.raises(ConfirmationRequired):
            await calling

    asyncio.run(call())
    (end,) = entry_metadata("tool.failed")
    assert (end["code"], end["runId"]) == ("CONFIRMATION_REQUIRED", Run.objects.get().id)


@pytest.mark.usefixtures("file_tools_on_worker")
def test_a_call_whose_caller_disconnects_is_audited_as_interrupted(principal: Principal) -> None:
    async def disconnect() -> None:
        calling = await start_call(principal)
        calling.cancel()
        await asyncio.wait({calling})
        assert calling.cancelled()

    asyncio.run(disconnect())
    (end,) = entry_metadata("tool.failed")
    assert (end["code"], end["runId"]) == ("interrupted", Run.objects.get().id)


@pytest.mark.usefixtures("file_tools_on_worker", "worker")
def test_the_timeout_of_a_call_is_the_timeout_of_its_step(principal: Principal) -> None:
    call_direct(principal, "get_runtime_info", timeout_ms=4999)
    assert RunStep.objects.get().input["timeoutMs"] == 4999


def test_a_tool_gets_no_more_time_than_the_timeout_of_its_call(
    principal: Principal, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds_left: list[float] = []

    async def record_time(call: ToolCall, ctx: ToolContext) -> ToolResult:
        seconds_left.append(ctx.seconds_left())
        return await invoke(call, ctx)

    monkeypatch.setattr("runs.calls.step_call.invoke", record_time)
    calls = [{"name": "get_runtime_info", **more} for more in ({}, {"timeoutMs": 5000})]
    submit_run(
        principal=principal,
        template_id="call_tools",
        inputs={"calls": calls},
        options={"mode": "async"},
    )
    worker = WorkerProcess()
    worker.work()
    worker.close()
    assert seconds_left[1] <= 5 < seconds_left[0]


def call_events() -> list[tuple[str, dict[str, Any]]]:
    """Return the audit events of the calls themselves, oldest first."""
    rows = AuditEntry.objects.filter(action__startswith="tool.", resource_type="tool")
    return list(rows.order_by("id").values_list("action", "metadata"))


@pytest.mark.usefixtures("file_tools_on_worker")
def test_a_call_on_a_worker_is_audited_before_its_run_starts(principal: Principal) -> None:
    async def events_before_start() -> list[tuple[str, dict[str, Any]]]:
        calling = await start_call(principal)
        events = await in_thread(call_events)
        calling.cancel()
        await asyncio.wait({calling})
        return events

    ((action, called),) = asyncio.run(events_before_start())
    assert (action, called["runId"]) == ("tool.called", Run.objects.get().id)
    assert [metadata["callId"] for _, metadata in call_events()] == [called["callId"]] * 2
    assert not OpenCall.objects.exists()


@pytest.mark.usefixtures("file_tools_on_worker", "worker")
@pytest.mark.parametrize(
    ("name", "args", "code"),
    [
        ("read_file", {"path": "game/scene/absent.txt"}, "E_NOT_FOUND"),
        ("write_to_file", {"path": LONG, "content": "", "dryRun": False}, "E_POLICY_VIOLATION"),
    ],
)
def test_the_audit_log_has_the_error_code_that_the_caller_receives(
    principal: Principal, name: str, args: dict[str, Any], code: str
) -> None:
    with pytest.raises(FailedCall) as failed:
        call_direct(principal, name, args=args)
    (first_action, _), (last_action, metadata) = call_events()
    assert (first_action, last_action) == ("tool.called", "tool.failed")
    assert failed.value.error["errorCode"] == metadata["code"] == code


@pytest.mark.usefixtures("file_tools_on_worker", "worker")
def test_each_call_with_the_same_key_has_audit_entries_of_its_own(principal: Principal) -> None:
    first, again = (call_direct(principal, "get_runtime_info", key="k") for _ in range(2))
    assert first.run_id == again.run_id
    entries = [
        (action, metadata["callId"], metadata["runId"]) for action, metadata in call_events()
    ]
    assert entries == [
        (action, one.call_id, first.run_id)
        for one in (first, again)
        for action in ("tool.called", "tool.succeeded")
    ]


@pytest.mark.usefixtures("file_tools_on_worker", "worker")
def test_a_key_used_for_a_different_call_leaves_one_refusal_in_the_audit_log(
    principal: Principal,
) -> None:
    call_direct(principal, "list_files", args={"path": "game"}, key="k")
    with pytest.raises(Conflict):
        call_direct(principal, "list_files", args={"path": "."}, key="k")
    assert call_events()[2:] == [("tool.refused", {"tool": "list_files", "code": "E_CONFLICT"})]
