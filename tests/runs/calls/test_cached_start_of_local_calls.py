"""An agent's calls of local tools are admitted with policy and target that the worker has cached; a
change made while the model runs applies to the next call all the same."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runners.errors import ToolFailed
from runners.models import ExecutionTarget
from runners.targets.targets import TargetFields, change_target
from runs.calls import step_call
from runs.calls.attempt import StepAttempt
from runs.calls.start import start_call
from runs.journal import writer
from runs.models import OpenCall, RunStep
from runs.submission.cancel import cancel_run
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import SubmitGoal, execute_run, tool_results
from tests.support.agent.model_server import ModelRequest, ModelServer
from tests.support.agent.model_turns import Call, Turn, complete


def read(number: int) -> Call:
    """Return a call that reads."""
    return Call("read_file", {"path": "game/scene/start.txt"}, f"r{number}")


def in_database(function: Callable[[], Any]) -> None:
    """Run a function in a separate thread."""
    try:
        function()
    finally:
        connection.close()


def meanwhile(model: ModelServer, function: Callable[[], Any]) -> None:
    """Make the model read twice, and run a function before the second read."""

    def answer(request: ModelRequest) -> Turn:
        number = len(tool_results(request))
        if number == 1:
            with ThreadPoolExecutor() as pool:  # the model's server is an event loop
                pool.submit(in_database, function).result()
        return complete() if number > 1 else Turn("", [read(number)])

    model.answer = answer


def codes(model: ModelServer) -> list[Any]:
    """Return the error codes of the calls, as the last request to the model contains them."""
    return [one.get("error", {}).get("code") for one in tool_results(model.requests[-1])]


def test_a_cached_policy_and_target_are_not_read_again(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse_read(*_: Any) -> Any:
        raise AssertionError("it was read again")

    def forbid_reads() -> None:
        monkeypatch.setattr("runs.calls.target.find_target", refuse_read)
        monkeypatch.setattr("decisions.authorization.policy._rules", refuse_read)

    meanwhile(model, forbid_reads)
    run = execute_run(submit_goal(), worker)
    assert (run.status, codes(model)) == ("succeeded", [None, None]), run.error


def test_a_rule_created_during_the_turn_of_the_model_applies_to_its_next_call(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    fields = RuleFields("deny", tool="read_file", reason="test")
    meanwhile(model, lambda: create_rule(fields, actor="test"))
    assert execute_run(submit_goal(), worker).status == "succeeded"
    assert codes(model) == [None, "POLICY_DENIED"]
    assert AuditEntry.objects.filter(action="policy.denied").count() == 1


def test_a_folder_disabled_during_the_turn_of_the_model_is_not_read(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess, principal: Principal
) -> None:
    def disable() -> None:
        target = ExecutionTarget.objects.get(name="game")
        fields = TargetFields(
            target.tenant_id, target.workspace_id, "game", enabled=False, config=target.config
        )
        change_target(target.id, fields, actor="test")

    meanwhile(model, disable)
    assert execute_run(submit_goal(), worker).status == "succeeded"
    assert codes(model) == [None, "E_TOOL_DISABLED"]


def test_a_run_canceled_at_the_start_of_a_cached_call_does_not_make_it(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    principal: Principal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write, started = writer.write, list[int]()

    def cancel_first(lease: Any, changes: Any, **more: Any) -> None:
        started.extend(change.index for change in changes if change.status == "started")
        if started[-1:] == [2]:  # the second call starts
            cancel_run(principal=principal, run_id=lease.run.id)
        write(lease, changes, **more)

    monkeypatch.setattr(writer, "write", cancel_first)
    model.script = [Turn("", [read(1), read(2)]), complete()]
    run = execute_run(submit_goal(), worker)
    call_count = AuditEntry.objects.filter(resource_id=run.id, action="tool.called").count()
    assert (run.status, call_count, OpenCall.objects.count()) == ("canceled", 1, 0)


def test_a_cached_call_is_recorded_with_the_start_of_its_step(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, recorded_alone = start_call, list[str]()

    def count(call_id: str, *args: Any, **options: Any) -> bool:
        recorded_alone.append(call_id)
        return start(call_id, *args, **options)

    monkeypatch.setattr("runs.calls.step_start.start_call", count)
    model.script = [Turn("", [read(1), read(2)]), Turn("", [read(3)]), complete()]
    run = execute_run(submit_goal(), worker)
    rows = AuditEntry.objects.filter(resource_id=run.id, action__startswith="tool.").order_by("id")
    actions = [(row.action, row.metadata["step"]) for row in rows]
    assert (run.status, len(recorded_alone), codes(model)) == ("succeeded", 1, [None] * 3)
    steps = RunStep.objects.filter(run_id=run.id, name="read_file").values_list("index", flat=True)
    assert actions == [
        (action, step) for step in sorted(steps) for action in ("tool.called", "tool.succeeded")
    ]
    assert not OpenCall.objects.exists()


def test_a_step_that_ends_before_its_call_is_made_is_recorded_as_interrupted(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    invoke_step, invoked = step_call._invoke, list[int]()

    async def fail_second(attempt: StepAttempt, *args: Any) -> dict[str, Any]:
        invoked.append(attempt.index)
        if len(invoked) == 2:
            raise ToolFailed("It broke.")
        return await invoke_step(attempt, *args)

    monkeypatch.setattr(step_call, "_invoke", fail_second)
    model.script = [Turn("", [read(1), read(2)]), complete()]
    assert execute_run(submit_goal(), worker).status == "succeeded"
    ends = AuditEntry.objects.filter(action__in=["tool.succeeded", "tool.failed"]).order_by("id")
    assert [row.metadata.get("code") for row in ends] == [None, "interrupted"]
    assert not OpenCall.objects.exists()


def test_a_call_is_not_made_while_the_rules_change_all_the_time(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runs.calls.step_start.all_hold", lambda preconditions: False)
    monkeypatch.setattr("runs.calls.step_start.start_call", lambda *args, **options: False)
    model.script = [Turn("", [read(1)]), complete()]
    assert execute_run(submit_goal(), worker).status == "succeeded"
    assert codes(model) == ["STEP_EXECUTION_FAILED"]
    assert not AuditEntry.objects.filter(action="tool.called").exists()
