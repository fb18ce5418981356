"""The template `submit_and_verify`: fill a form, submit it once, verify that it was accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, Field, StrictBool

from runners.actions.parameters import Dialog
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
    held_before,
    open_start_page,
)
from runs.task_templates.page_texts import shown_characters
from runs.task_templates.registry import register
from runs.task_templates.subjects import place_of, subject_line

# Error codes of a submit step that clicked nothing.
NOT_SUBMITTED = frozenset(
    {
        "ELEMENT_NOT_FOUND",
        "INVALID_PARAMETER",
        "POLICY_DENIED",
        "TRUST_LEVEL_NOT_ALLOWED",
    }
)


NOT_SENT = (
    "After the submit the page requested nothing and shows nothing new: the form was"
    " apparently not sent. Look at the site before you submit it again."
)
HELD_BEFORE = (
    "The success indicator held before the submit too, so it shows nothing; success is judged"
    " without it."
)
FORM_AGAIN = "After the submit the page shows the form again, so it is not known to be accepted. "


class FormField(Closed):
    """A field of the form and its value."""

    name: str = Field(
        min_length=1, max_length=100, description=_("The field's name in the result.")
    )
    value: str = Field(
        max_length=20_000,
        description=_(
            "Text to type; the label of an option; true or false for a checkbox; YYYY-MM-DD"
            " for a date."
        ),
    )
    locator: Locator
    secret: StrictBool = Field(
        default=False, description=_("True: the value is stored sealed and shown nowhere.")
    )


class SubmitAndVerifyInputs(Closed):
    """The inputs of `submit_and_verify`: the form, its values, and the success indicator."""

    start_url: StartUrl = Field(alias="startUrl")
    fields: list[FormField] = Field(
        min_length=1, max_length=20, description=_("Filled in this order.")
    )
    submit: Locator | None = Field(
        default=None,
        description=_("The button to click; by default the filled form's submit button, or Enter."),
    )
    dialog: Dialog = None
    success_indicator: WaitCondition | None = Field(
        default=None,
        alias="successIndicator",
        description=_("A condition that holds for the page once the form was accepted."),
    )
    extract: Extract = None


@register
class SubmitAndVerify(TaskTemplate):
    """Open, fill field by field, submit, verify; the submit is never repeated."""

    template_id = "submit_and_verify"
    name = _("Submit a form and verify")
    description = _(
        "Open a page, fill the fields of a form, submit it exactly once, and verify by an indicator"
        " that it was accepted; then read the page. A submit whose worker was lost is never"
        " repeated. The result names the fields, not their values; the page that is read may show"
        " them, unless a field is secret."
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
                "description": "The indicator was met, and had not been before the submit; without"
                " such a one: the page reacted, is no error page, marks no field as invalid, and"
                " does not show the form again (or emptied, with a new text that is no error).",
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
        "required": ["success", "finalPage", "submittedFields", "indicatorMatched"],
    }
    uses_browser = True
    shares_page = True
    step_timeout_ms = STEP_MS
    limits = {"maxFields": 20, "maxValueLength": 20_000, "maxWaitMs": 120_000}

    def subject(self, inputs: Mapping[str, Any]) -> str:
        """Return the form's address and the names of its fields, without their values."""
        names = ", ".join(field["name"] for field in inputs["fields"][:4])
        more = ", …" if len(inputs["fields"]) > 4 else ""
        return subject_line(place_of(inputs["startUrl"]), names + more)

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return the steps: open, one per field, submit (once), verify.

        Submit and verify use no secret themselves, but need them: submit to fill the fields again
        on a page that was lost with a worker, and both to mask values that the page echoes.
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
        """Return the paths of the values of fields that are marked secret."""
        fields = enumerate(inputs["fields"])
        return {("fields", n, "value") for n, field in fields if field.get("secret")}

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Perform one step; its output contains no value of a field."""
        action = step.input["do"]
        if action == "open":
            condition = ctx.inputs.get("successIndicator")
            return await open_start_page(step.input["url"], condition, ctx, watches=True)
        if action == "fill":
            return await self._fill(step.input["field"], ctx)
        if action == "submit":
            chosen = {"locator": ctx.inputs.get("submit"), "dialog": ctx.inputs.get("dialog")}
            given = {name: value for name, value in chosen.items() if value is not None}
            return await ctx.call("submit_form", given)
        condition = ctx.inputs.get("successIndicator")
        wait = {"endsWatch": True, **({"condition": condition} if condition else {})}
        check = await ctx.call("wait_for", wait)
        page = await ctx.call("read_current_page", extract_of(ctx.inputs))
        warnings = dict.fromkeys([*check["warnings"], *page["warnings"]])
        return {
            **page,
            "met": check["met"],
            "refusedFields": check["refusedFields"],
            "reacted": check["reacted"],
            "formAgain": check["formAgain"],
            "heldBefore": held_before(ctx.earlier),
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
        if number == len(ctx.inputs["fields"]) - 1:
            await ctx.call("watch_page", {})
        return {"field": field["name"], "match": filled["match"], "warnings": filled["warnings"]}

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return the page after the submit.

        A form that was submitted and not accepted is a partial success: the result keeps the page,
        and callers do not take the run for one to repeat.
        """
        submit = steps[-2]
        failed = failed_step(steps)
        if failed is not None:
            submitted = _submitted(submit)
            return failed_conclusion(
                failed,
                template_id=self.template_id,
                inputs=_without_secrets(inputs),
                again=submitted == "no" and not _has_secrets(inputs),
                submitted=submitted,
            )
        page = steps[-1].output
        if page is None:  # the run timed out before
            return Conclusion(RunStatus.FAILED)
        return self._verified(inputs, steps, page)

    @staticmethod
    def _verified(
        inputs: Mapping[str, Any], steps: Sequence[StepView], page: Mapping[str, Any]
    ) -> Conclusion:
        met = page["met"]
        shows_nothing = met is None or (met and page.get("heldBefore"))
        success = _seems_accepted(page) if shows_nothing else met
        warnings = _warnings_about(page, success=success)
        result = {
            "success": success,
            "finalPage": final_page(page),
            "submittedFields": [field["name"] for field in inputs["fields"]],
            "indicatorMatched": met,
            "pageInfo": page.get("pageInfo"),
            "content": page.get("content"),
        }
        outcome = "accepted" if success else "apparently not accepted"
        return Conclusion(
            RunStatus.SUCCEEDED if success else RunStatus.PARTIAL_SUCCESS,
            result=result,
            summary=f"The form was submitted and {outcome}: {page.get('title')}",
            warnings=[*warnings, *warnings_of(steps)],
            shown_characters=shown_characters(inputs),
        )


def _seems_accepted(page: Mapping[str, Any]) -> bool:
    """Return whether a form seems accepted, without an indicator that shows it."""
    is_error = (page.get("httpStatus") or 200) >= 400
    again = page.get("formAgain")
    is_refused = is_error or page["refusedFields"] or (again and not again["seemsAccepted"])
    return not is_refused and page.get("reacted") is not False


def _warnings_about(page: Mapping[str, Any], *, success: bool) -> list[str]:
    """Return what the page after the submit shows, apart from the condition."""
    met, refused, again = page["met"], page["refusedFields"], page.get("formAgain")
    warnings = [f"“{field['field']}” is marked as invalid: {field['says']}" for field in refused]
    if met and page.get("heldBefore"):
        warnings.insert(0, HELD_BEFORE)
    if page.get("reacted") is False and not refused:
        warnings.insert(0, NOT_SENT)
    if met is False:
        warnings.insert(0, "The form was submitted, but the success indicator was not met.")
    if again and not success and not refused:
        new = again["newText"]
        warnings.append(FORM_AGAIN + (f"New on it: “{new}”" if new else "It shows no new text."))
    return warnings


def _submitted(submit: StepView) -> str:
    """Return whether the form was submitted: yes, no or unknown."""
    if submit.succeeded:
        return "yes"
    error = submit.error or {"errorCode": "not started", "details": {"effect": "none"}}
    details = error.get("details") or {}
    if error["errorCode"] in NOT_SUBMITTED or details.get("effect") == "none":
        return "no"
    return "no" if "restoring" in details else "unknown"


def _has_secrets(inputs: Mapping[str, Any]) -> bool:
    return any(field.get("secret") for field in inputs["fields"])


def _without_secrets(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs for next actions, without the fields if a value is secret."""
    return {"startUrl": inputs["startUrl"]} if _has_secrets(inputs) else dict(inputs)
