"""The scripted model on the tasks, and models that do nothing or always say done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decisions.identity.principals import Principal
from runs.worker.worker import WorkerProcess
from tests.support.agent.model_server import ModelServer
from tests.trials.agent_bench.attempt import Outcome, attempt
from tests.trials.agent_bench.catalogue import all_tasks
from tests.trials.agent_bench.solver.scripted_model import ScriptedModel, do_nothing, say_done
from tests.trials.agent_bench.task import TASKS
from tests.trials.agent_bench.tasks.forms import UPLOADED, UPLOADED_TEXT

QUICK = ("refused form", "shadow roots", "question before deleting", "order in a field")
Try = Callable[..., Outcome]


@pytest.fixture
def try_task(
    principal: Principal,
    worker: WorkerProcess,
    model: ModelServer,
    agent_settings: Any,
    project: Path,
) -> Try:
    """Let the model that `answer` names try a task once."""
    (project / UPLOADED).write_text(UPLOADED_TEXT)

    def make(name: str, answer: Any, seed: int = 2) -> Outcome:
        model.answer = answer
        return attempt(
            TASKS[name],
            seed,
            principal=principal,
            execute=lambda run_id: worker.work(),
            model=answer if isinstance(answer, ScriptedModel) else None,
        )

    return make


@pytest.mark.slow
def test_the_scripted_model_does_a_few_tasks_from_observations_alone(try_task: Try) -> None:
    outcomes = [try_task(name, ScriptedModel()) for name in QUICK]
    assert [one.task for one in outcomes if not one.success] == [], outcomes
    assert all(one.turns > 2 for one in outcomes)


def test_a_model_that_says_done_does_none_of_them(try_task: Try) -> None:
    outcomes = [try_task(name, say_done) for name in QUICK]
    assert [(one.status, one.success) for one in outcomes] == [("succeeded", False)] * len(QUICK)


@pytest.mark.slow
def test_the_scripted_model_does_all_forty_tasks(try_task: Try) -> None:
    outcomes = [try_task(task.name, ScriptedModel()) for task in all_tasks()]
    assert [(one.task, one.answer) for one in outcomes if not one.success] == []


@pytest.mark.slow
@pytest.mark.parametrize("answer", [say_done, do_nothing])
def test_models_that_do_nothing_reach_none_of_the_forty(try_task: Try, answer: Any) -> None:
    outcomes = [try_task(task.name, answer) for task in all_tasks()]
    assert [one.task for one in outcomes if one.success] == []
