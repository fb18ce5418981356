"""A turn with three calls whose stream is cut at bytes from its first to its last, in the durable
loop: no incomplete call is made, and none twice.

tests/runners/llm/test_truncated_streams.py cuts at every byte.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from runs.models import Run, RunEvent, RunStep
from runs.worker.worker import WorkerProcess
from tests.support.agent.model_server import ModelRequest, ModelServer
from tests.support.agent.model_turns import (
    Turn,
    anthropic_stream,
    complete,
    openai_stream,
    write_call,
)

Provider = Literal["openai", "anthropic"]
TURN = Turn(
    "I write three files.",
    [write_call("a.txt", f"{name} 你好\n", id_=name) for name in "xyz"],
    piece=30,
)
WHOLE = "x 你好\ny 你好\nz 你好\n"
SAMPLES = 9  # bytes of the stream, for each provider


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest, agent_settings: Any, model: ModelServer) -> Provider:
    """Set the format of the model's server; writes need no preview."""
    name: Provider = request.param
    base = f"{model.url}/v1" if name == "openai" else model.url
    agent_settings.LLM = replace(agent_settings.LLM, provider=name, base_url=base)
    policy = replace(agent_settings.WORKSPACE_POLICY, write_requires_diff=False)
    agent_settings.WORKSPACE_POLICY = policy
    return name


def cuts(provider: Provider) -> list[Turn]:
    """Return the turn cut at bytes from before its first to before its last event, alternately with
    an error and as if the stream had ended there."""
    events = openai_stream(TURN) if provider == "openai" else anthropic_stream(TURN)
    closing = -3 if provider == "openai" else -1
    last = sum(map(len, events[:closing])) + len(events[closing]) // 2
    cut_points = [last * number // (SAMPLES - 1) for number in range(SAMPLES)]
    return [replace(TURN, cut_at=at, cut_cleanly=bool(n % 2)) for n, at in enumerate(cut_points)]


def replies(*first: Turn) -> Callable[[ModelRequest], Turn]:
    """Return a model that replies with these turns, then the whole turn, and completes on the
    results."""
    left = [*first, TURN]

    def answer(request: ModelRequest) -> Turn:
        has_results = "tool_result" in str(request.body) or "'role': 'tool'" in str(request.body)
        return complete() if has_results else left.pop(0)

    return answer


def calls_of(run: Run) -> list[str]:
    """Return the calls of a run, by their ids."""
    steps = RunStep.objects.filter(run_id=run.id).order_by("index")
    return [step.input["toolCallId"] for step in steps if step.input["kind"] == "call"]


@pytest.mark.slow
def test_a_turn_cut_once_makes_each_call_once(
    provider: Provider,
    model: ModelServer,
    submit_goal: Callable[..., str],
    worker: WorkerProcess,
    project: Path,
) -> None:
    for cut in cuts(provider):
        model.answer = replies(cut)
        run_id = submit_goal()
        worker.work()
        run = Run.objects.get(id=run_id)
        assert run.status == "succeeded", (cut.cut_at, run.error)
        assert calls_of(run) == ["x", "y", "z"], cut.cut_at
        assert (project / "a.txt").read_text("utf-8") == WHOLE, cut.cut_at
        started = RunEvent.objects.filter(run_id=run.id, type="toolUsed", data__phase="start")
        assert started.count() == 3, cut.cut_at
        (project / "a.txt").unlink()


@pytest.mark.slow
def test_a_turn_cut_twice_makes_no_call(
    provider: Provider,
    model: ModelServer,
    submit_goal: Callable[..., str],
    worker: WorkerProcess,
    project: Path,
) -> None:
    for first, second in zip(cuts(provider), cuts(provider)[::-1], strict=True):
        model.answer = replies(first, second)
        run_id = submit_goal()
        worker.work()
        run = Run.objects.get(id=run_id)
        assert run.status == "failed", (first.cut_at, second.cut_at)
        assert run.error["details"]["causeCode"] == "LLM_STREAM_FAILED"
        assert calls_of(run) == []
        assert not RunEvent.objects.filter(run_id=run.id, type="toolUsed").exists()
        assert not (project / "a.txt").exists()
