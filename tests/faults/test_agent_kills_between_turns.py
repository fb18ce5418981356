"""A worker of an agent's run is killed while its model streams, between two calls of one turn, and
around a question: no recorded turn is requested again, and no question is asked twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import override_settings

from decisions.identity.principals import local_principal
from runs.models import Run, RunEvent, RunStep
from runs.submission.answer import answer_run
from runs.submission.submit import submit_run
from tests.faults.installation import FaultInstallation
from tests.faults.test_agent_kills import results_by_call_id, start_workers
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete, write_call

QUESTION = Call("ask_followup_question", {"question": "Which colour?"}, "q1")
TWO_CALLS = Turn(
    "Both.", [write_call("a.txt", "1\n", id_="c1"), Call("read_file", {"path": "a.txt"}, "c2")]
)


def submit_goal(folder: Path) -> str:
    """Submit a goal and return the run's id."""
    with override_settings(WORKSPACE=folder):
        return submit_run(
            principal=local_principal(),
            template_id="agent_task",
            inputs={"goal": "Write."},
            options={"mode": "async"},
        ).run_id


def wait_for_question(installation: FaultInstallation, run_id: str) -> None:
    """Wait until a run waits for an answer and no worker holds its lease."""
    installation.wait_until(
        lambda: Run.objects.get(id=run_id).waiting_for, "the run asked no question"
    )
    assert Run.objects.get(id=run_id).waiting_for["question"] == "Which colour?"


def check_answered(installation: FaultInstallation, model: ModelServer, run_id: str) -> None:
    """Answer, wait for the run's end, and check that the question was asked once and each turn was
    requested once."""
    answer_run(principal=local_principal(), run_id=run_id, answer="blue")
    run = installation.wait_for_end(run_id)
    assert run.status == "succeeded", run.error
    assert results_by_call_id(model.requests[1])["q1"]["result"] == {"answer": "blue"}
    assert len(model.requests) == 2
    assert RunStep.objects.filter(run_id=run_id, name="ask_followup_question").count() == 1
    waited = RunEvent.objects.filter(run_id=run_id, type="run.waiting")
    assert waited.count() == 1
    installation.check_invariants()


@pytest.mark.slow
def test_a_turn_whose_worker_is_killed_while_it_streams_is_requested_again(
    installation: FaultInstallation, model: ModelServer, tmp_path: Path
) -> None:
    stalled_turn = Turn("Never mind this. " * 20, stall_at=3000)
    model.answer = lambda request: stalled_turn if len(model.requests) == 1 else complete("this")
    start_workers(installation, model, tmp_path)
    run_id = submit_goal(tmp_path)
    delta_events = RunEvent.objects.filter(run_id=run_id, type="chatDelta")
    installation.wait_until(delta_events.exists, "the model's words were not recorded")
    owner = Run.objects.get(id=run_id).lease_owner
    workers = {
        worker.id: process
        for process in installation.processes[1:]
        if (worker := installation.worker_of(process)) is not None
    }
    workers[str(owner)].kill()
    run = installation.wait_for_end(run_id, 120)
    assert (run.status, run.result["answer"], run.times_lost) == ("succeeded", "this", 1)
    deltas = list(delta_events.order_by("seq").values_list("data", flat=True))
    restarted_at = next(n for n, delta in enumerate(deltas) if delta.get("restarted"))
    assert restarted_at > 0
    assert not any("Never" in delta["content"] for delta in deltas[restarted_at:])
    assert len(model.requests) == 2
    installation.check_invariants()


@pytest.mark.slow
def test_a_kill_between_two_calls_of_a_turn_repeats_neither_the_turn_nor_the_first_call(
    installation: FaultInstallation, model: ModelServer, tmp_path: Path
) -> None:
    failpoint_file = installation.arm_failpoint("before_call", "wait")
    model.answer = lambda request: complete() if results_by_call_id(request) else TWO_CALLS
    start_workers(installation, model, tmp_path)
    run_id = submit_goal(tmp_path)
    installation.wait_until(
        lambda: installation.failpoint_was_hit("before_call"), "no call was made"
    )
    # Of the second call, written with what the first one left.
    installation.arm_failpoint("step_started")
    failpoint_file.unlink()
    run = installation.wait_for_end(run_id)
    assert installation.failpoint_was_hit("step_started")
    assert (run.status, run.times_lost) == ("succeeded", 1), run.error
    assert (tmp_path / "a.txt").read_text() == "1\n"
    results = results_by_call_id(model.requests[1])
    assert [results[call]["ok"] for call in ("c1", "c2")] == [True, True]
    assert len(model.requests) == 2
    installation.check_invariants()


@pytest.mark.parametrize(
    "failpoint_name", ["before_waiting", pytest.param("after_waiting", marks=pytest.mark.slow)]
)
def test_a_question_whose_worker_is_killed_is_asked_once(
    installation: FaultInstallation, model: ModelServer, tmp_path: Path, failpoint_name: str
) -> None:
    installation.arm_failpoint(failpoint_name)
    model.answer = lambda request: (
        complete() if results_by_call_id(request) else Turn("", [QUESTION])
    )
    start_workers(installation, model, tmp_path)
    run_id = submit_goal(tmp_path)
    installation.wait_until(
        lambda: installation.failpoint_was_hit(failpoint_name),
        f"{failpoint_name} was never reached",
    )
    wait_for_question(installation, run_id)
    check_answered(installation, model, run_id)


@pytest.mark.slow
def test_another_worker_receives_the_answer_to_a_question(
    installation: FaultInstallation, model: ModelServer, tmp_path: Path
) -> None:
    model.answer = lambda request: (
        complete() if results_by_call_id(request) else Turn("", [QUESTION])
    )
    start_workers(installation, model, tmp_path)
    run_id = submit_goal(tmp_path)
    wait_for_question(installation, run_id)
    for worker in installation.processes[1:]:
        worker.kill()
    start_workers(installation, model, tmp_path)
    check_answered(installation, model, run_id)
