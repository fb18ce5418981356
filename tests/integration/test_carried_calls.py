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
from decisions.errors import ConfirmationRequired, Conflict
from decisions.identity.principals import Principal
from decisions.infra.threads import in_long_thread, in_thread
from decisions.models import AuditEntry
from runners.invocation.invoke import invoke
from runners.invocation.workspace_errors import FailedCall
from runners.tools import registry
from runners.tools.base import ToolCall, ToolContext, ToolResult
from runs.direct_calls import calls
from runs.direct_calls.calls import call_tool
from runs.direct_calls.request import DirectCallRequest, DirectCallResult
from runs.models import OpenCall, Run, RunStep
from runs.submission.services import submit_run
from runs.worker.worker import WorkerProcess

pytest_plugins = ["tests.support.workspace_fixtures"]

LONG = "game/scene/long.txt"
LONG_S = 60.0


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    """Run calls of file tools on a worker, as browser tools do; no browser is needed."""
    here = registry.get_tool

    def look(name: str) -> Any:
        found = here(name)
        return None if found is None else replace(found, uses_browser=True)

    monkeypatch.setattr(calls, "get_tool", look)


@pytest.fixture
def worker(principal: Principal) -> Iterator[None]:
    """Start a worker on a thread of its own that claims runs until the test ends."""
    over = threading.Event()

    def work() -> None:
        worker = WorkerProcess()
        try:
            while not over.wait(0.05):
                worker.work()
        finally:
            worker.close()
            connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    over.set()
    thread.join(LONG_S)


def made(principal: Principal, name: str, **more: Any) -> DirectCallResult:
    """Make a direct call and return its result."""
    args = more.pop("args", {})
    return asyncio.run(
        call_tool(principal=principal, request=DirectCallRequest(name, args, **more))
    )


@pytest.mark.usefixtures("carried", "worker")
@pytest.mark.parametrize("size", [10, 65_500, 400_000])
def test_the_caller_receives_the_complete_output(
    principal: Principal, project: Path, size: int
) -> None:
    (project / LONG).write_text("x" * size)
    answered = made(principal, "read_file", args={"path": LONG})
    assert answered.run_id is not None
    assert answered.output["content"] == "x" * size


def ends(action: str) -> list[dict[str, Any]]:
    """Return the metadata of the audit entries with this action."""
    rows = AuditEntry.objects.filter(action=action, resource_type="tool")
    return list(rows.values_list("metadata", flat=True))


async def handed_in(principal: Principal) -> asyncio.Task[DirectCallResult]:
    """Start a direct call, wait until its run exists, and return the task."""
    asked = DirectCallRequest("get_runtime_info")
    calling = asyncio.ensure_future(call_tool(principal=principal, request=asked))
    async with asyncio.timeout(LONG_S):
        while not await in_thread(Run.objects.exists):
            await asyncio.sleep(0.02)
    return calling


def ask_and_work() -> None:
    create_rule(RuleFields("confirm", tool="get_runtime_info"), actor="test")
    worker = WorkerProcess()
    worker.work()
    worker.close()


@pytest.mark.usefixtures("carried")
def test_a_call_whose_run_waits_for_a_person_is_audited_as_failed(principal: Principal) -> None:
    async def call() -> None:
        calling = await handed_in(principal)
        await in_long_thread(ask_and_work)
        with pytest.raises(ConfirmationRequired):
            await calling

    asyncio.run(call())
    (end,) = ends("tool.failed")
    assert (end["code"], end["runId"]) == ("CONFIRMATION_REQUIRED", Run.objects.get().id)


@pytest.mark.usefixtures("carried")
def test_a_call_whose_caller_disconnects_is_audited_as_interrupted(principal: Principal) -> None:
    async def hang_up() -> None:
        calling = await handed_in(principal)
        calling.cancel()
        await asyncio.wait({calling})
        assert calling.cancelled()

    asyncio.run(hang_up())
    (end,) = ends("tool.failed")
    assert (end["code"], end["runId"]) == ("interrupted", Run.objects.get().id)


@pytest.mark.usefixtures("carried", "worker")
def test_the_timeout_of_a_call_is_the_timeout_of_its_step(principal: Principal) -> None:
    made(principal, "get_runtime_info", timeout_ms=4999)
    assert RunStep.objects.get().input["timeoutMs"] == 4999


def test_a_tool_gets_no_more_time_than_the_timeout_of_its_call(
    principal: Principal, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[float] = []

    async def look(call: ToolCall, ctx: ToolContext) -> ToolResult:
        left.append(ctx.seconds_left())
        return await invoke(call, ctx)

    monkeypatch.setattr("runs.execution.step_context.invoke", look)
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
    assert left[1] <= 5 < left[0]


def about_calls() -> list[tuple[str, dict[str, Any]]]:
    """Return the audit events of the calls themselves, oldest first."""
    rows = AuditEntry.objects.filter(action__startswith="tool.", resource_type="tool")
    return list(rows.order_by("id").values_list("action", "metadata"))


@pytest.mark.usefixtures("carried")
def test_a_call_on_a_worker_is_audited_before_its_run_starts(principal: Principal) -> None:
    async def look() -> list[tuple[str, dict[str, Any]]]:
        calling = await handed_in(principal)
        seen = await in_thread(about_calls)
        calling.cancel()
        await asyncio.wait({calling})
        return seen

    ((action, begun),) = asyncio.run(look())
    assert (action, begun["runId"]) == ("tool.called", Run.objects.get().id)
    assert [told["callId"] for _, told in about_calls()] == [begun["callId"]] * 2
    assert not OpenCall.objects.exists()


@pytest.mark.usefixtures("carried", "worker")
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
        made(principal, name, args=args)
    (begun, _), (ended, told) = about_calls()
    assert (begun, ended) == ("tool.called", "tool.failed")
    assert failed.value.error["errorCode"] == told["code"] == code


@pytest.mark.usefixtures("carried", "worker")
def test_each_call_with_the_same_key_has_audit_entries_of_its_own(principal: Principal) -> None:
    first, again = (made(principal, "get_runtime_info", key="k") for _ in range(2))
    assert first.run_id == again.run_id
    told = [(action, told["callId"], told["runId"]) for action, told in about_calls()]
    assert told == [
        (action, one.call_id, first.run_id)
        for one in (first, again)
        for action in ("tool.called", "tool.succeeded")
    ]


@pytest.mark.usefixtures("carried", "worker")
def test_a_key_used_for_a_different_call_leaves_one_refusal_in_the_audit_log(
    principal: Principal,
) -> None:
    made(principal, "list_files", args={"path": "game"}, key="k")
    with pytest.raises(Conflict):
        made(principal, "list_files", args={"path": "."}, key="k")
    assert about_calls()[2:] == [("tool.refused", {"tool": "list_files", "code": "E_CONFLICT"})]
