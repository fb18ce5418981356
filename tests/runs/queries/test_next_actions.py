"""The next calls that an ended run suggests: safe, short, and always one after a failure."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from decisions.foundation.errors import ArtifactExpired, RunNotFound
from decisions.identity.principals import Principal
from runs.models import Run, RunStep
from runs.queries.runs import get_run
from runs.submission.cancel import cancel_run
from runs.task_templates.outcomes import RESUBMIT_MAX_BYTES, next_actions

Submit = Callable[..., str]
TIMED_OUT = {"errorCode": "RUN_TIMEOUT", "retryable": True}


def next_tools(principal: Principal, run_id: str) -> list[str]:
    shown = get_run(principal=principal, run_id=run_id)
    return [action["tool"] for action in shown.get("nextActions", [])]


def test_a_canceled_run_without_effects_suggests_a_new_submit(
    submit: Submit, principal: Principal
) -> None:
    run_id = submit("ok")
    cancel_run(principal=principal, run_id=run_id)
    assert next_tools(principal, run_id) == ["run_task_template"]


def test_a_canceled_run_with_possible_effects_suggests_reading_its_events(
    make_run: Callable[..., Run], principal: Principal
) -> None:
    run = make_run(status="running")
    RunStep.objects.create(run=run, index=0, name="send", input={}, effect="once")
    cancel_run(principal=principal, run_id=run.id)
    assert next_tools(principal, run.id) == ["subscribe_task_run_events"]


def test_a_canceled_run_with_secrets_does_not_suggest_its_masked_inputs(
    make_run: Callable[..., Run], principal: Principal
) -> None:
    run = make_run(holds_secrets=True)
    cancel_run(principal=principal, run_id=run.id)
    assert next_tools(principal, run.id) == ["subscribe_task_run_events"]


def test_a_canceled_run_suggests_no_submit_with_a_credential_in_a_url(
    make_run: Callable[..., Run], principal: Principal
) -> None:
    run = make_run(inputs={"goal": "Read http://x.test/?token=canary12 and count"})
    cancel_run(principal=principal, run_id=run.id)
    assert next_tools(principal, run.id) == ["subscribe_task_run_events"]
    run.refresh_from_db()
    assert "canary12" not in str(run.next_actions)


def test_no_suggestion_has_a_credential_of_a_url() -> None:
    inputs = {"startUrl": "http://x.test/?token=canary12"}
    for error in (TIMED_OUT, {"errorCode": "ELEMENT_NOT_FOUND"}, {"errorCode": "OTHER"}):
        assert next_actions(error, template_id="t", inputs=inputs, again="retryable" in error) == []


@pytest.mark.parametrize(
    ("status", "tools"),
    [("succeeded", []), ("partial_success", []), ("failed", ["subscribe_task_run_events"])],
)
def test_a_failed_run_without_a_suggestion_of_its_own_gets_one(
    make_run: Callable[..., Run], principal: Principal, status: str, tools: list[str]
) -> None:
    run = make_run(status=status)
    assert next_tools(principal, run.id) == tools


def test_large_inputs_are_not_repeated_in_the_suggestion() -> None:
    large = {"text": "x" * RESUBMIT_MAX_BYTES}
    assert next_actions(TIMED_OUT, template_id="t", inputs=large, again=True) == []
    [small] = next_actions(TIMED_OUT, template_id="t", inputs={"text": "x"}, again=True)
    assert small["args"]["inputs"] == {"text": "x"}


def test_a_failure_that_is_not_retryable_suggests_no_resubmit() -> None:
    error = {"errorCode": "STEP_EXECUTION_FAILED", "retryable": False}
    assert next_actions(error, template_id="t", inputs={}, again=True) == []
    [again] = next_actions(error | {"retryable": True}, template_id="t", inputs={}, again=True)
    assert again["reason"] == "Submit the same once more."


def test_each_refusal_has_its_own_copy_of_the_suggested_calls() -> None:
    first, second = RunNotFound("a").as_dict(), RunNotFound("b").as_dict()
    first["nextActions"][0]["args"]["limit"] = 1000
    assert second["nextActions"][0]["args"] == {"limit": 10}
    assert "nextActions" not in ArtifactExpired("an upload", next_actions=[]).as_dict()
