"""One attempt: serve a task's site, submit its goal as a run of the agent, and check the result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from decisions.identity.principals import Principal
from runs.models import Run
from runs.submission.submit import submit_run
from tests.trials.agent_bench.site import Site, serving
from tests.trials.agent_bench.solver.scripted_model import ScriptedModel
from tests.trials.agent_bench.task import BenchTask, Seeded

MAX_STEPS = 40


@dataclass(frozen=True)
class Outcome:
    """What one attempt came to."""

    task: str
    kind: str
    seed: int
    success: bool
    status: str
    turns: int
    tokens: int
    seconds: float
    cost_usd: float | None
    answer: str

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)


def attempt(
    task: BenchTask,
    seed: int,
    *,
    principal: Principal,
    execute: Callable[[str], object],
    model: ScriptedModel | None = None,
) -> Outcome:
    """Let the agent try a task once, and return the outcome.

    Args:
        execute: executes the submitted run until it has ended.
        model: the scripted model, which is given the task's intents; None for other models.
    """
    with serving(Site()) as site:
        assignment = task.build(site, Seeded(task.name, seed))
        if model is not None:
            model.learn(assignment.goal, assignment.intents)
        started = time.perf_counter()
        run_id = submit_run(
            principal=principal,
            template_id="agent_task",
            inputs={"goal": assignment.goal, "maxSteps": MAX_STEPS},
            options={"mode": "async"},
        ).run_id
        execute(run_id)
        seconds = time.perf_counter() - started
        run = Run.objects.get(id=run_id)
        answer = str((run.result or {}).get("answer", ""))
        success = run.status == "succeeded" and assignment.check(answer)
    usage = (run.result or {}).get("usage") or (run.error or {}).get("details", {}).get("usage", {})
    return Outcome(
        task=task.name,
        kind=task.kind,
        seed=seed,
        success=success,
        status=run.status,
        turns=usage.get("turns", 0),
        tokens=usage.get("inputTokens", 0) + usage.get("outputTokens", 0),
        seconds=round(seconds, 2),
        cost_usd=usage.get("costUsd"),
        answer=answer or str(run.error or ""),
    )
