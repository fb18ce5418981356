"""A worker of an agent's run is killed while its model streams, between two calls of one turn, and
around a question: no recorded turn is requested again, and no question is asked twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import override_settings

from decisions.identity.principals import local_principal
from runs.models import Run, RunEvent, RunStep
from runs.submission.answer import answer_run
from runs.submission.services import submit_run
from tests.faults.test_agent import results, start
from tests.faults.world import World
from tests.support.model_server import ModelServer
from tests.support.model_turns import Call, Turn, complete, write_call

pytest_plugins = ["tests.support.model_fixtures"]
ASK = Call("ask_followup_question", {"question": "Which colour?"}, "q1")
TWO = Turn(
    "Both.", [write_call("a.txt", "1\n", id_="c1"), Call("read_file", {"path": "a.txt"}, "c2")]
)


def go(folder: Path) -> str:
    """Submit a goal and return the run's id."""
    with override_settings(WORKSPACE=folder):
        return submit_run(
            principal=local_principal(),
            template_id="agent_task",
            inputs={"goal": "Write."},
            options={"mode": "async"},
        ).run_id


def waits(world: World, run_id: str) -> None:
    """Wait until a run waits for an answer and no worker holds its lease."""
    world.until(lambda: Run.objects.get(id=run_id).waiting_for, "it did not ask")
    assert Run.objects.get(id=run_id).waiting_for["question"] == "Which colour?"


def check_answered(world: World, model: ModelServer, run_id: str) -> None:
    """Answer, wait for the run's end, and check that the question was asked once and each turn was
    requested once."""
    answer_run(principal=local_principal(), run_id=run_id, answer="blue")
    run = world.ended(run_id)
    assert run.status == "succeeded", run.error
    assert results(model.requests[1])["q1"]["result"] == {"answer": "blue"}
    assert len(model.requests) == 2
    assert RunStep.objects.filter(run_id=run_id, name="ask_followup_question").count() == 1
    waited = RunEvent.objects.filter(run_id=run_id, type="run.waiting")
    assert waited.count() == 1
    world.check()


def test_a_turn_whose_worker_is_killed_while_it_streams_is_requested_again(
    world: World, model: ModelServer, tmp_path: Path
) -> None:
    half = Turn("Never mind this. " * 20, stall_at=3000)
    model.answer = lambda asked: half if len(model.requests) == 1 else complete("this")
    start(world, model, tmp_path)
    run_id = go(tmp_path)
    told = RunEvent.objects.filter(run_id=run_id, type="chatDelta")
    world.until(told.exists, "nothing was said")
    owner = Run.objects.get(id=run_id).lease_owner
    workers = {
        worker.id: process
        for process in world.processes[1:]
        if (worker := world.worker_of(process)) is not None
    }
    workers[str(owner)].kill()
    run = world.ended(run_id, 120)
    assert (run.status, run.result["answer"], run.times_lost) == ("succeeded", "this", 1)
    deltas = list(told.order_by("seq").values_list("data", flat=True))
    said_before = next(n for n, one in enumerate(deltas) if one.get("restarted"))
    assert said_before > 0
    assert not any("Never" in one["content"] for one in deltas[said_before:])
    assert len(model.requests) == 2
    world.check()


def test_a_kill_between_two_calls_of_a_turn_repeats_neither_the_turn_nor_the_first_call(
    world: World, model: ModelServer, tmp_path: Path
) -> None:
    held = world.arm("before_call", "wait")
    model.answer = lambda asked: complete() if results(asked) else TWO
    start(world, model, tmp_path)
    run_id = go(tmp_path)
    world.until(lambda: world.was_hit("before_call"), "it called nothing")
    world.arm("step_started")  # of the second call, written with what the first one left
    held.unlink()
    run = world.ended(run_id)
    assert world.was_hit("step_started")
    assert (run.status, run.times_lost) == ("succeeded", 1), run.error
    assert (tmp_path / "a.txt").read_text() == "1\n"
    told = results(model.requests[1])
    assert [told[call]["ok"] for call in ("c1", "c2")] == [True, True]
    assert len(model.requests) == 2
    world.check()


@pytest.mark.parametrize("moment", ["before_waiting", "after_waiting"])
def test_a_question_whose_worker_is_killed_is_asked_once(
    world: World, model: ModelServer, tmp_path: Path, moment: str
) -> None:
    world.arm(moment)
    model.answer = lambda asked: complete() if results(asked) else Turn("", [ASK])
    start(world, model, tmp_path)
    run_id = go(tmp_path)
    world.until(lambda: world.was_hit(moment), f"{moment} was never reached")
    waits(world, run_id)
    check_answered(world, model, run_id)


def test_another_worker_receives_the_answer_to_a_question(
    world: World, model: ModelServer, tmp_path: Path
) -> None:
    model.answer = lambda asked: complete() if results(asked) else Turn("", [ASK])
    start(world, model, tmp_path)
    run_id = go(tmp_path)
    waits(world, run_id)
    for worker in world.processes[1:]:
        worker.kill()
    start(world, model, tmp_path)
    check_answered(world, model, run_id)
