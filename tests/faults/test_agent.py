"""A worker is killed during an agent's run: another worker resumes the run after its last completed
step and repeats no call."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from decisions.identity.principals import local_principal
from runners.targets.targets import TargetFields, allow_on_target, create_target_row
from runs.models import Run, RunStep
from runs.submission.services import submit_run
from tests.faults.world import World
from tests.support.browsing_model import BrowsingModel, serve_shop
from tests.support.model_server import ModelRequest, ModelServer
from tests.support.model_turns import Call, Turn, complete, write_call
from tests.support.page_server import PageServer
from tests.support.stub_runner import responding_with, stub_runner

pytest_plugins = [
    "tests.support.model_fixtures",
    "tests.support.browser_fixtures",
    "tests.support.runner_fixtures",
]
TURNS = [
    Turn("One.", [write_call("a.txt", "1\n", id_="c1")]),
    Turn("Two.", [write_call("a.txt", "2\n", id_="c2")]),
    complete(),
]


def results(asked: ModelRequest) -> dict[str, dict[str, Any]]:
    """Return the tool results that a model request contains, by call id."""
    told = [one for one in asked.body["messages"] if one["role"] == "tool"]
    return {one["tool_call_id"]: json.loads(one["content"]) for one in told}


def says(first: Callable[[], object]) -> Callable[[ModelRequest], Turn]:
    """Return a model that chooses its reply by the tool results it has received; it calls `first`
    once, at its first request."""
    once = threading.Event()

    def answer(asked: ModelRequest) -> Turn:
        if not once.is_set():
            once.set()
            first()
        return TURNS[len(results(asked))]

    return answer


def go(world: World, folder: Path) -> str:
    """Submit a goal and return the run's id."""
    with override_settings(WORKSPACE=folder):
        return submit_run(
            principal=local_principal(),
            template_id="agent_task",
            inputs={"goal": "Write."},
            options={"mode": "async"},
        ).run_id


def start(world: World, model: ModelServer, folder: Path, **env: str) -> None:
    """Start a scheduler and two workers that are configured with the model."""
    world.start("scheduler")
    world.workers(
        2,
        CONTINUITY_WORKSPACE=str(folder),
        CONTINUITY_WRITE_REQUIRES_DIFF="0",
        CONTINUITY_LLM_MODEL="scripted",
        CONTINUITY_LLM_BASE_URL=f"{model.url}/v1",
        **env,
    )


def check(world: World, run: Run) -> None:
    assert run.status == "succeeded", run.error
    assert run.times_lost == 1
    assert (run.total_steps, run.done_steps) == (5, 5)
    world.check()


def test_a_lost_model_turn_is_requested_again(
    world: World, model: ModelServer, tmp_path: Path
) -> None:
    start(world, model, tmp_path)
    model.answer = says(partial(world.arm, "step_over"))  # the reply was sent but not recorded
    run = world.ended(go(world, tmp_path))
    assert world.was_hit("step_over")
    assert (tmp_path / "a.txt").read_text() == "1\n2\n"
    assert len(model.requests) == 4
    check(world, run)


@pytest.mark.parametrize("moment", ["before_call", "after_call"])
def test_a_lost_call_is_not_repeated_and_the_model_is_informed(
    world: World, model: ModelServer, tmp_path: Path, moment: str
) -> None:
    start(world, model, tmp_path)
    model.answer = says(partial(world.arm, moment))
    run = world.ended(go(world, tmp_path))
    assert world.was_hit(moment)
    lost = results(model.requests[1])["c1"]
    assert (lost["ok"], lost["error"]["details"]["effect"]) == (False, "unknown")
    assert (tmp_path / "a.txt").read_text() == ("1\n2\n" if moment == "after_call" else "2\n")
    assert len(model.requests) == 3
    check(world, run)


@pytest.mark.parametrize("moment", ["before_call", "after_call"])
def test_a_lost_click_is_not_repeated_and_the_page_is_read_again(
    world: World, model: ModelServer, tmp_path: Path, page_server: PageServer, moment: str
) -> None:
    start(world, model, tmp_path)
    browsing, pressed = BrowsingModel(serve_shop(page_server)), threading.Event()

    def answer(asked: ModelRequest) -> Turn:
        turn = browsing(asked)
        if any(call.name == "browser_click" for call in turn.calls) and not pressed.is_set():
            pressed.set()
            world.arm(moment)
        return turn

    model.answer = answer
    run = world.ended(go(world, tmp_path), 120)
    assert world.was_hit(moment)
    lost = [one for asked in model.requests for one in results(asked).values() if not one["ok"]]
    assert lost[0]["error"]["details"]["effect"] == "unknown"
    assert lost[0]["page"]["newTab"]["url"] == page_server.url("/shop")
    assert lost[0]["page"]["result"]["screenshot"]["url"] == page_server.url("/shop")
    (click, *later) = RunStep.objects.filter(run_id=run.id, name="browser_click").order_by("index")
    assert (click.status, click.attempts) == ("failed", 1)
    assert [one.status for one in later] == ["succeeded"] * 2  # the model's own next clicks
    assert run.status == "succeeded", run.error
    assert run.times_lost == 1
    world.check()


@pytest.mark.parametrize("moment", ["before_call", "after_call"])
def test_a_lost_call_to_a_runner_is_never_sent_again(
    world: World, model: ModelServer, tmp_path: Path, open_loopback: None, moment: str
) -> None:
    me = local_principal()
    with stub_runner(responding_with({"ok": True, "output": "hello"})) as runner:
        says = TargetFields(
            me.tenant_id, me.workspace_id, "hands", "docker-runner", endpoint=runner.url
        )
        allow_on_target(create_target_row(says, actor="test"), ["bash.exec"], actor="test")
        start(world, model, tmp_path, CONTINUITY_EGRESS_ALLOW="127.0.0.1")

        def answer(asked: ModelRequest) -> Turn:
            if results(asked):
                return complete()
            world.arm(moment)
            return Turn("", [Call("bash_exec", {"cmd": "x"}, "b1")])

        model.answer = answer
        run = world.ended(go(world, tmp_path))
        assert world.was_hit(moment)
        assert len(runner.requests) == (1 if moment == "after_call" else 0)
    assert results(model.requests[1])["b1"]["error"]["details"]["effect"] == "unknown"
    assert (run.status, run.times_lost) == ("succeeded", 1)
    world.check()
