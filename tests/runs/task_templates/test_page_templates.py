"""The page templates: their descriptions, examples, schemas and steps."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from pydantic import ValidationError

from runners.browser.parameters import Locator, WaitCondition
from runs.task_templates.base import StepView, TaskTemplate
from runs.task_templates.outcomes import OWN_CODES, failed_conclusion
from runs.task_templates.registry import get_template

PAGE_TEMPLATES = ("search_extract", "paginated_extract", "submit_and_verify", "multi_tab_compare")


def get_page_template(template_id: str) -> TaskTemplate:
    found = get_template(template_id)
    assert found is not None
    return found


@pytest.mark.parametrize("template_id", PAGE_TEMPLATES)
def test_a_template_describes_all_that_a_caller_needs(template_id: str) -> None:
    description = get_page_template(template_id).describe()
    assert set(description["inputSchema"]) & {"oneOf", "anyOf", "allOf"} == set()
    assert description["inputSchema"]["additionalProperties"] is False
    assert description["trustLevelSupport"] == ["local", "remote"]
    assert description["outputSchema"]["type"] == "object"
    assert description["limits"]
    assert all("description" in field for field in fields_of(description["inputSchema"]))


def fields_of(schema: dict[str, Any]) -> list[dict[str, Any]]:
    objects = [schema, *schema.get("$defs", {}).values()]
    plain = [field for object_ in objects for field in object_.get("properties", {}).values()]
    return [
        schema["$defs"][field["$ref"].rpartition("/")[2]] if "$ref" in field else field
        for field in plain
    ]


@pytest.mark.parametrize("template_id", PAGE_TEMPLATES)
def test_the_examples_of_a_template_are_valid_calls(template_id: str) -> None:
    found = get_page_template(template_id)
    for example in found.example_inputs:
        assert list(found.inputs_validator.iter_errors(dict(example))) == []
        assert found.plan(example)


@pytest.mark.parametrize(
    ("template_id", "steps"),
    [
        ("search_extract", 5),
        ("paginated_extract", 5),
        ("submit_and_verify", 5),
        ("multi_tab_compare", 3),
    ],
)
def test_the_steps_of_a_template_are_known_at_submit(template_id: str, steps: int) -> None:
    found = get_page_template(template_id)
    assert len(found.plan(found.example_inputs[0])) == steps


def test_only_the_submit_of_a_form_is_a_once_step() -> None:
    found = get_page_template("submit_and_verify")
    plan = found.plan(found.example_inputs[0])
    assert [step.name for step in plan if step.effect == "once"] == ["submit the form"]
    assert not any(
        step.effect == "once"
        for other in ("search_extract", "paginated_extract", "multi_tab_compare")
        for step in get_page_template(other).plan(get_page_template(other).example_inputs[0])
    )


@pytest.mark.parametrize(
    ("model", "value"),
    [
        (Locator, {"mode": "semantic"}),
        (Locator, {"mode": "semantic", "query": " "}),
        (Locator, {"mode": "selector", "query": "x"}),
        (Locator, {"mode": "selector", "selector": "a", "query": "x"}),
        (Locator, {"mode": "selector", "selector": None}),
        (WaitCondition, {"type": "selector"}),
        (WaitCondition, {"type": "urlContains", "value": None}),
    ],
)
def test_schema_and_model_refuse_the_same_input(
    model: type[Locator] | type[WaitCondition], value: dict[str, Any]
) -> None:
    schema = Draft202012Validator(model.model_json_schema(by_alias=True))
    assert not schema.is_valid(value)
    with pytest.raises(ValidationError):
        model.model_validate(value)


def failed_step(**error: Any) -> StepView:
    return StepView(3, "do it", {}, False, None, {"message": "no", **error})


def test_an_error_code_outside_the_contract_becomes_a_failed_step() -> None:
    conclusion = failed_conclusion(
        failed_step(errorCode="POLICY_DENIED"), template_id="x", inputs={}
    )
    assert conclusion.error is not None
    assert conclusion.error["errorCode"] == "STEP_EXECUTION_FAILED"
    assert conclusion.error["details"]["causeCode"] == "POLICY_DENIED"
    assert conclusion.error["step"] == {"step": 3, "name": "do it"}


def test_a_retry_is_not_proposed_for_a_step_that_may_have_had_its_effect() -> None:
    inputs = {"startUrl": "https://example.org/"}
    for code in sorted(OWN_CODES):
        step = failed_step(errorCode=code, details={"effect": "unknown"})
        conclusion = failed_conclusion(
            step, template_id="submit_and_verify", inputs=inputs, again=False
        )
        for action in conclusion.next_actions:
            proposed = action["tool"], action["args"].get("templateId")
            assert proposed != ("run_task_template", "submit_and_verify")
