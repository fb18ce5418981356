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
from runs.submission.submit import submit_run
from tests.faults.installation import FaultInstallation
from tests.support.agent.browsing_model import BrowsingModel, serve_shop
from tests.support.agent.model_server import ModelRequest, ModelServer
from tests.support.agent.model_turns import Call, Turn, complete, write_call
from tests.support.browser.page_server import PageServer
from tests.support.runners.stub_runner import responding_with, stub_runner

TURNS = [
    Turn("One.", [write_call("a.txt", "1\n", id_="c1")]),
    Turn("Two.", [write_call("a.txt", "2\n", id_="c2")]),
    complete(),
]


def results_by_call_id(request: ModelRequest) -> dict[str, dict[str, Any]]:
    """Return the tool results that a model request contains, by call id."""
    messages = [message for message in request.body["messages"] if message["role"] == "tool"]
    return {message["tool_call_id"]: json.loads(message["content"]) for message in messages}


def scripted_model(before_first_reply: Callable[[], object]) -> Callable[[ModelRequest], Turn]:
    """Return a model that chooses its reply by the tool results it has received; it calls `first`
    once, at its first request."""
    called = threading.Event()

    def answer(request: ModelRequest) -> Turn:
        if not called.is_set():
            called.set()
            before_first_reply()
        return TURNS[len(results_by_call_id(request))]

    return answer


def submit_goal(installation: FaultInstallation, folder: Path) -> str:
    """Submit a goal and return the run's id."""
    with override_settings(WORKSPACE=folder):
        return submit_run(
            principal=local_principal(),
            template_id="agent_task",
            inputs={"goal": "Write."},
            options={"mode": "async"},
        ).run_id


def start_workers(
    installation: FaultInstallation, model: ModelServer, folder: Path, **env: str
) -> None:
    """Start a scheduler and two workers that are configured with the model."""
    installation.start("scheduler")
    installation.workers(
        2,
        CONTINUITY_WORKSPACE=str(folder),
        CONTINUITY_WRITE_REQUIRES_DIFF="0",
        CONTINUITY_LLM_MODEL="scripted",
        CONTINUITY_LLM_BASE_URL=f"{model.url}/v1",
        **env,
    )


def check_resumed(installation: FaultInstallation, run: Run) -> None:
    assert run.status == "succeeded", run.error
    assert run.times_lost == 1
    assert (run.total_steps, run.done_steps) == (5, 5)
    installation.check_invariants()


def test_a_lost_model_turn_is_requested_again(
    installation: FaultInstallation, model: ModelServer, tmp_path: Path
) -> None:
    start_workers(installation, model, tmp_path)
    # The reply was sent but not recorded.
    model.answer = scripted_model(partial(installation.arm_failpoint, "step_over"))
    run = installation.wait_for_end(submit_goal(installation, tmp_path))
    assert installation.failpoint_was_hit("step_over")
    assert (tmp_path / "a.txt").read_text() == "1\n2\n"
    assert len(model.requests) == 4
    check_resumed(installation, run)


@pytest.mark.parametrize(
    "failpoint_name", [pytest.param("before_call", marks=pytest.mark.slow), "after_call"]
)
def test_a_lost_call_is_not_repeated_and_the_model_is_informed(
    installation: FaultInstallation, model: ModelServer, tmp_path: Path, failpoint_name: str
) -> None:
    start_workers(installation, model, tmp_path)
    model.answer = scripted_model(partial(installation.arm_failpoint, failpoint_name))
    run = installation.wait_for_end(submit_goal(installation, tmp_path))
    assert installation.failpoint_was_hit(failpoint_name)
    lost = results_by_call_id(model.requests[1])["c1"]
    assert (lost["ok"], lost["error"]["details"]["effect"]) == (False, "unknown")
    assert (tmp_path / "a.txt").read_text() == (
        "1\n2\n" if failpoint_name == "after_call" else "2\n"
    )
    assert len(model.requests) == 3
    check_resumed(installation, run)


@pytest.mark.parametrize(
    "failpoint_name", [pytest.param("before_call", marks=pytest.mark.slow), "after_call"]
)
def test_a_lost_click_is_not_repeated_and_the_page_is_read_again(
    installation: FaultInstallation,
    model: ModelServer,
    tmp_path: Path,
    page_server: PageServer,
    failpoint_name: str,
) -> None:
    start_workers(installation, model, tmp_path)
    browsing, pressed = BrowsingModel(serve_shop(page_server)), threading.Event()

    def answer(request: ModelRequest) -> Turn:
        turn = browsing(request)
        if any(call.name == "browser_click" for call in turn.calls) and not pressed.is_set():
            pressed.set()
            installation.arm_failpoint(failpoint_name)
        return turn

    model.answer = answer
    run = installation.wait_for_end(submit_goal(installation, tmp_path), 120)
    assert installation.failpoint_was_hit(failpoint_name)
    lost = [
        result
        for request in model.requests
        for result in results_by_call_id(request).values()
        if not result["ok"]
    ]
    assert lost[0]["error"]["details"]["effect"] == "unknown"
    assert lost[0]["page"]["newTab"]["url"] == page_server.url("/shop")
    assert lost[0]["page"]["url"] == page_server.url("/shop")
    (click, *next_clicks) = RunStep.objects.filter(run_id=run.id, name="browser_click").order_by(
        "index"
    )
    assert (click.status, click.attempts) == ("failed", 1)
    assert [result.status for result in next_clicks] == [
        "succeeded"
    ] * 2  # the model's own next clicks
    assert run.status == "succeeded", run.error
    assert run.times_lost == 1
    installation.check_invariants()


@pytest.mark.parametrize(
    "failpoint_name", [pytest.param("before_call", marks=pytest.mark.slow), "after_call"]
)
def test_a_lost_call_to_a_runner_is_never_sent_again(
    installation: FaultInstallation,
    model: ModelServer,
    tmp_path: Path,
    open_loopback: None,
    failpoint_name: str,
) -> None:
    principal = local_principal()
    with stub_runner(responding_with({"ok": True, "output": "hello"})) as runner:
        fields = TargetFields(
            principal.tenant_id,
            principal.workspace_id,
            "runner",
            "docker-runner",
            endpoint=runner.url,
        )
        allow_on_target(
            create_target_row(fields, actor="test"), ["bash.exec"], actor="test", reason="test"
        )
        start_workers(installation, model, tmp_path, CONTINUITY_EGRESS_ALLOW="127.0.0.1")

        def answer(request: ModelRequest) -> Turn:
            if results_by_call_id(request):
                return complete()
            installation.arm_failpoint(failpoint_name)
            return Turn("", [Call("bash_exec", {"cmd": "x"}, "b1")])

        model.answer = answer
        run = installation.wait_for_end(submit_goal(installation, tmp_path))
        assert installation.failpoint_was_hit(failpoint_name)
        assert len(runner.requests) == (1 if failpoint_name == "after_call" else 0)
    assert results_by_call_id(model.requests[1])["b1"]["error"]["details"]["effect"] == "unknown"
    assert (run.status, run.times_lost) == ("succeeded", 1)
    installation.check_invariants()
