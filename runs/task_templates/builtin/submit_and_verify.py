"""Fill a form, submit it once, and see what came of it (runs.md, `submit_and_verify`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, Field, StrictBool

from runners.browser.parameters import Locator, WaitCondition
from runners.tools.base import Closed, Effect
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView, TaskTemplate
from runs.task_templates.outcomes import failed_conclusion, failed_step, warnings_of
from runs.task_templates.page_inputs import (
    CONTENT,
    FINAL_PAGE,
    PAGE_INFO,
    STEP_MS,
    Extract,
    StartUrl,
    extract_of,
    final_page,
)
from runs.task_templates.registry import register

# Codes of a submit that never pressed anything.
NOTHING_DONE = frozenset(
    {
        "ELEMENT_NOT_FOUND",
        "INVALID_PARAMETER",
        "POLICY_DENIED",
        "TRUST_LEVEL_NOT_ALLOWED",
    }
)


class FormField(Closed):
    """A field and what to put there."""

    name: str = Field(
        min_length=1, max_length=100, description="What to call the field in the result."
    )
    value: str = Field(
        max_length=20_000,
        description="Text to type; the label of an option; true or false for a box; YYYY-MM-DD for"
        " a date.",
    )
    locator: Locator
    secret: StrictBool = Field(
        default=False, description="True: the value is kept sealed and shown nowhere."
    )


class SubmitAndVerifyInputs(Closed):
    """Which form, what to fill in, and how to tell that it was taken."""

    start_url: StartUrl = Field(alias="startUrl")
    fields: list[FormField] = Field(
        min_length=1, max_length=20, description="Filled in this order."
    )
    submit: Locator | None = Field(
        default=None,
        description="The button to press; without it the filled form's submit button, or Enter.",
    )
    success_indicator: WaitCondition | None = Field(
        default=None,
        alias="successIndicator",
        description="What is true of the page once the form was taken.",
    )
    extract: Extract = None


@register
class SubmitAndVerify(TaskTemplate):
    """Open, fill field by field, submit, verify; the submit is never repeated."""

    template_id = "submit_and_verify"
    name = "Submit a form and verify"
    description = (
        "Open a page, fill the fields of a form, submit it exactly once, and verify by an indicator"
        " that it was taken; then read the page. A submit whose worker was lost is never repeated."
        " Values are never part of the result."
    )
    inputs_model: ClassVar[type[BaseModel]] = SubmitAndVerifyInputs
    example_inputs = (
        {
            "startUrl": "https://example.com/contact",
            "fields": [
                {
                    "name": "email",
                    "value": "ada@example.com",
                    "locator": {"mode": "semantic", "query": "e-mail"},
                },
                {
                    "name": "message",
                    "value": "Hello",
                    "locator": {"mode": "selector", "selector": "textarea"},
                },
            ],
            "submit": {"mode": "semantic", "query": "send"},
            "successIndicator": {"type": "textIncludes", "value": "Thank you"},
        },
    )
    result_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "success": {
                "type": "boolean",
                "description": "The indicator was met; without one: the page that came is no error"
                " and marks no field as wrong.",
            },
            "finalPage": FINAL_PAGE,
            "submittedFields": {"type": "array", "items": {"type": "string"}},
            "indicatorMatched": {
                "type": ["boolean", "null"],
                "description": "null without an indicator.",
            },
            "pageInfo": PAGE_INFO,
            "content": CONTENT,
        },
        "required": [
            "success",
            "finalPage",
            "submittedFields",
            "indicatorMatched",
            "pageInfo",
            "content",
        ],
    }
    uses_browser = True
    shares_page = True
    step_timeout_ms = STEP_MS
    limits = {"maxFields": 20, "maxValueLength": 20_000, "maxWaitMs": 120_000}

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return the steps: open, one a field, submit (once), verify.

        Submit and verify use no secret, and need them all the same: the submit to fill in again
        what a lost worker had filled in, both to keep what the page echoes out of what they say.
        """
        secret = _has_secrets(inputs)
        fills = [
            StepPlan(
                f"fill {field['name']}",
                {"do": "fill", "field": n},
                Effect.AT_LEAST_ONCE,
                needs_secrets=bool(field.get("secret")),
            )
            for n, field in enumerate(inputs["fields"])
        ]
        return [
            StepPlan("open the page", {"do": "open", "url": inputs["startUrl"]}),
            *fills,
            StepPlan("submit the form", {"do": "submit"}, Effect.ONCE, needs_secrets=secret),
            StepPlan("verify and read the page", {"do": "verify"}, needs_secrets=secret),
        ]

    def secret_paths(self, inputs: Mapping[str, Any]) -> set[tuple[str | int, ...]]:
        """Return where the values of fields are that are flagged secret."""
        fields = enumerate(inputs["fields"])
        return {("fields", n, "value") for n, field in fields if field.get("secret")}

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Do one step; what is returned holds no value of a field."""
        what = step.input["do"]
        if what == "open":
            return await ctx.call("open_page", {"url": step.input["url"]})
        if what == "fill":
            return await self._fill(step.input["field"], ctx)
        if what == "submit":
            button = ctx.inputs.get("submit")
            return await ctx.call("submit_form", {"locator": button} if button else {})
        condition = ctx.inputs.get("successIndicator")
        told = await ctx.call("wait_for", {"condition": condition} if condition else {})
        read = await ctx.call("read_current_page", extract_of(ctx.inputs))
        warnings = dict.fromkeys([*told["warnings"], *read["warnings"]])
        return {
            **read,
            "met": told["met"],
            "refusedFields": told["refusedFields"],
            "warnings": list(warnings),
        }

    @staticmethod
    async def _fill(number: int, ctx: StepContext) -> dict[str, Any]:
        field = ctx.inputs["fields"][number]
        value = (
            {"secret": f"fields.{number}.value"}
            if field.get("secret")
            else {"value": field["value"]}
        )
        filled = await ctx.call("fill_field", {"locator": field["locator"], **value})
        return {"field": field["name"], "match": filled["match"], "warnings": filled["warnings"]}

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return where it led; a form that was submitted and not taken is a partial success, for
        only that keeps the page and cannot be mistaken for something to repeat.
        """
        submit = steps[-2]
        broken = failed_step(steps)
        if broken is not None:
            submitted = _submitted(submit)
            return failed_conclusion(
                broken,
                template_id=self.template_id,
                inputs=_without_secrets(inputs),
                again=submitted == "no" and not _has_secrets(inputs),
                submitted=submitted,
            )
        read = steps[-1].output
        if read is None:  # the run's time was up before
            return Conclusion(RunStatus.FAILED)
        return self._verdict(inputs, steps, read)

    @staticmethod
    def _verdict(
        inputs: Mapping[str, Any], steps: Sequence[StepView], read: Mapping[str, Any]
    ) -> Conclusion:
        met, refused = read["met"], read["refusedFields"]
        seems_taken = (read.get("httpStatus") or 200) < 400 and not refused
        success = seems_taken if met is None else met
        notes = [f"“{one['field']}” is marked as wrong: {one['says']}" for one in refused]
        if met is False:
            notes.insert(0, "The form was submitted, but the success indicator was not met.")
        result = {
            "success": success,
            "finalPage": final_page(read),
            "submittedFields": [field["name"] for field in inputs["fields"]],
            "indicatorMatched": met,
            "pageInfo": read.get("pageInfo"),
            "content": read.get("content"),
        }
        told = "taken" if success else "not taken, as far as the page tells"
        return Conclusion(
            RunStatus.SUCCEEDED if success else RunStatus.PARTIAL_SUCCESS,
            result=result,
            summary=f"The form was submitted and {told}: {read.get('title')}",
            warnings=[*notes, *warnings_of(steps)],
        )


def _submitted(submit: StepView) -> str:
    """Return whether the form was sent: yes, no or unknown."""
    if submit.succeeded:
        return "yes"
    error = submit.error or {"errorCode": "never begun", "details": {"effect": "none"}}
    details = error.get("details") or {}
    if error["errorCode"] in NOTHING_DONE or details.get("effect") == "none":
        return "no"
    return "no" if "restoring" in details else "unknown"


def _has_secrets(inputs: Mapping[str, Any]) -> bool:
    return any(field.get("secret") for field in inputs["fields"])


def _without_secrets(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs for a call to propose; where values are secret there is none to make."""
    return {"startUrl": inputs["startUrl"]} if _has_secrets(inputs) else dict(inputs)
