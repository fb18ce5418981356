"""The calls that a run's end offers: safe, short, and always one after a bad end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from decisions.errors import ArtifactExpired, RunNotFound
from decisions.identity.principals import Principal
from runs.models import Run, RunStep
from runs.queries.runs import get_run
from runs.submission.services import cancel_run
from runs.task_templates.outcomes import RESUBMIT_MAX_BYTES, next_actions

Submit = Callable[..., str]
LATE = {"errorCode": "RUN_TIMEOUT", "retryable": True}


def offered(principal: Principal, run_id: str) -> list[str]:
    shown = get_run(principal=principal, run_id=run_id)
    return [action["tool"] for action in shown.get("nextActions", [])]


def test_a_canceled_run_that_sent_nothing_can_be_submitted_again(
    submit: Submit, principal: Principal
) -> None:
    run_id = submit("ok")
    cancel_run(principal=principal, run_id=run_id)
    assert offered(principal, run_id) == ["run_task_template"]


def test_a_canceled_run_that_may_have_sent_something_is_looked_at_first(
    make_run: Callable[..., Run], principal: Principal
) -> None:
    run = make_run(status="running")
    RunStep.objects.create(run=run, index=0, name="send", input={}, effect="once")
    cancel_run(principal=principal, run_id=run.id)
    assert offered(principal, run.id) == ["subscribe_task_run_events"]


def test_a_canceled_run_that_held_secrets_is_not_offered_with_its_masked_inputs(
    make_run: Callable[..., Run], principal: Principal
) -> None:
    run = make_run(holds_secrets=True)
    cancel_run(principal=principal, run_id=run.id)
    assert offered(principal, run.id) == ["subscribe_task_run_events"]


@pytest.mark.parametrize(
    ("status", "tools"),
    [("succeeded", []), ("partial_success", []), ("failed", ["subscribe_task_run_events"])],
)
def test_after_a_bad_end_that_named_no_call_there_is_one_all_the_same(
    make_run: Callable[..., Run], principal: Principal, status: str, tools: list[str]
) -> None:
    run = make_run(status=status)
    assert offered(principal, run.id) == tools


def test_inputs_that_would_fill_the_answer_are_not_repeated() -> None:
    large = {"text": "x" * RESUBMIT_MAX_BYTES}
    assert next_actions(LATE, template_id="t", inputs=large, again=True) == []
    [small] = next_actions(LATE, template_id="t", inputs={"text": "x"}, again=True)
    assert small["args"]["inputs"] == {"text": "x"}


def test_what_failed_for_good_is_not_offered_as_it_was() -> None:
    error = {"errorCode": "STEP_EXECUTION_FAILED", "retryable": False}
    assert next_actions(error, template_id="t", inputs={}, again=True) == []
    [again] = next_actions(error | {"retryable": True}, template_id="t", inputs={}, again=True)
    assert again["reason"] == "Submit the same once more."


def test_a_refusal_names_a_call_of_its_own_each_time_and_none_where_it_is_told_none() -> None:
    first, second = RunNotFound("a").as_dict(), RunNotFound("b").as_dict()
    first["nextActions"][0]["args"]["limit"] = 1000
    assert second["nextActions"][0]["args"] == {"limit": 10}
    assert "nextActions" not in ArtifactExpired("an upload", next_actions=[]).as_dict()
