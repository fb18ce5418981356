"""The template `search_extract`: search on a site and read the list of results, or one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, Field

from runners.browser.parameters import Locator, WaitCondition
from runners.errors import SearchNotConfirmed
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
    OnHttpError,
    StartUrl,
    check_http_status,
    extract_of,
    final_page,
    held_before,
    open_start_page,
    waiting_for,
)
from runs.task_templates.page_texts import shown_characters
from runs.task_templates.registry import register
from runs.task_templates.subjects import first_words, host_of, subject_line

SUBMIT = 2  # the step that submits the search
JUST_TITLE = {"pageInfo": False, "content": False}


class SearchExtractInputs(Closed):
    """The inputs of `search_extract`: where to search, for what, and which result to open."""

    start_url: StartUrl = Field(alias="startUrl")
    query: str = Field(min_length=1, max_length=2000, description=_("What to search for."))
    search_field: Locator = Field(
        alias="searchField", description=_("The field that takes the query.")
    )
    submit: Locator | None = Field(
        default=None,
        description=_(
            "The button that starts the search; by default the form's own, or Enter, or, if"
            " Enter starts nothing, the search button beside the field."
        ),
    )
    open_result: Locator | None = Field(
        default=None,
        alias="openResult",
        description=_(
            "The result to open and read; of several that fit alike, the first. Without it"
            " the list of results is read."
        ),
    )
    wait_for_results: WaitCondition | None = Field(
        default=None,
        alias="waitForResults",
        description=_("A condition that holds once the results are shown."),
    )
    extract: Extract = None
    on_http_error: OnHttpError = "fail"


@register
class SearchExtract(TaskTemplate):
    """Five steps on one page: open, enter, submit, wait, read."""

    template_id = "search_extract"
    name = _("Search and read")
    description = _(
        "Open a page, type a query into its search field, submit it, wait for the results and read"
        " them, or open one of them and read that. Fields, buttons and results are found by CSS"
        " selector or by words in English or Chinese. It fails if nothing shows that the search"
        " happened: no request and no address has the query, and the page shows nothing new."
    )
    inputs_model: ClassVar[type[BaseModel]] = SearchExtractInputs
    example_inputs = (
        {
            "startUrl": "https://example.com/",
            "query": "durable queues",
            "searchField": {"mode": "semantic", "query": "search"},
        },
        {
            "startUrl": "https://example.com/",
            "query": "耐用",
            "searchField": {"mode": "selector", "selector": "input[name=q]"},
            "submit": {"mode": "semantic", "query": "搜索按钮"},
            "waitForResults": {"type": "selector", "value": ".result", "timeoutMs": 15000},
            "openResult": {"mode": "selector", "selector": ".result a"},
            "extract": {"pageInfo": False, "content": True, "maxContentLength": 8000},
        },
    )
    result_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "success": {"type": "boolean"},
            "finalPage": FINAL_PAGE,
            "query": {"type": "string"},
            "resultOpened": {"type": "boolean"},
            "pageInfo": PAGE_INFO,
            "content": CONTENT,
        },
        "required": ["success", "finalPage", "query", "resultOpened"],
    }
    uses_browser = True
    shares_page = True
    step_timeout_ms = STEP_MS
    limits = {"maxSteps": 5, "maxQueryLength": 2000, "maxWaitMs": 120_000}

    def subject(self, inputs: Mapping[str, Any]) -> str:
        """Return the site and what is searched for."""
        return subject_line(host_of(inputs["startUrl"]), f"“{first_words(inputs['query'])}”")

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return the five steps."""
        last = "open a result and read it" if inputs.get("openResult") else "read the results"
        effect = Effect.AT_LEAST_ONCE  # a search changes nothing on the site: it may be repeated
        return [
            StepPlan("open the page", {"do": "open", "url": inputs["startUrl"]}),
            StepPlan("enter the query", {"do": "enter"}, effect),
            StepPlan("submit the search", {"do": "submit"}, effect),
            StepPlan("wait for the results", {"do": "wait"}),
            StepPlan(last, {"do": "read"}, effect),
        ]

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Perform one of the five steps."""
        inputs, action = ctx.inputs, step.input["do"]
        if action == "open":
            return await open_start_page(
                step.input["url"], inputs.get("waitForResults"), ctx, watches=True
            )
        if action == "enter":
            args = {"locator": inputs["searchField"], "value": inputs["query"]}
            return await ctx.call("fill_field", args)
        if action == "submit":
            button = {"locator": inputs["submit"]} if inputs.get("submit") else {}
            await ctx.call("watch_page", {})
            return await ctx.call("submit_form", {"searchQuery": inputs["query"], **button})
        if action == "wait":
            return await self._wait_for_results(ctx)
        opened: Mapping[str, Any] = {}
        if inputs.get("openResult"):
            opened = await ctx.call("click_element", {"locator": inputs["openResult"]})
        page = await ctx.call("read_current_page", extract_of(inputs))
        await check_http_status(page, inputs, ctx)
        return {**page, "match": opened.get("match")}

    @staticmethod
    async def _wait_for_results(ctx: StepContext) -> dict[str, Any]:
        """Wait until the search is seen to have happened.

        A condition of the caller that held when the page was opened shows nothing.
        """
        condition = ctx.inputs.get("waitForResults")
        args = {"extract": JUST_TITLE, **waiting_for("waitForResults", condition)}
        page = await ctx.call("read_current_page", args)
        search = {"query": ctx.inputs["query"], "hasResults": held_before(ctx.earlier) is False}
        confirmed = await ctx.call("confirm_search", search)
        _check_no_link_was_followed(page, confirmed["evidence"], ctx)
        warnings = [*page["warnings"], *confirmed["warnings"]]
        return {**page, "evidence": confirmed["evidence"], "warnings": warnings}

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return the page that was read last."""
        failed = failed_step(steps)
        if failed is not None:
            return failed_conclusion(failed, template_id=self.template_id, inputs=inputs)
        page = steps[-1].output
        if page is None:  # the run timed out before
            return Conclusion(RunStatus.FAILED)
        opened = page.get("match") is not None
        result = {
            "success": True,
            "finalPage": final_page(page),
            "query": inputs["query"],
            "resultOpened": opened,
            "pageInfo": page.get("pageInfo"),
            "content": page.get("content"),
        }
        done = "opened and read a result" if opened else "read the results"
        sent = _sent_by(steps[SUBMIT].output or {})
        return Conclusion(
            RunStatus.SUCCEEDED,
            result=result,
            summary=f"Searched for “{inputs['query'][:100]}”{sent} and {done}: {page.get('title')}",
            warnings=warnings_of(steps),
            shown_characters=shown_characters(inputs),
        )


def _sent_by(submitted: Mapping[str, Any]) -> str:
    """Return how the search was sent, for the summary."""
    if submitted.get("sentBy") == "enter":
        return " with the Enter key"
    label = (submitted.get("match") or {}).get("label", "")
    because = (
        ", because Enter started nothing," if submitted.get("sentBy") == "searchButton" else ""
    )
    return f" with the button “{label}”{because}" if label else because


def _check_no_link_was_followed(page: Mapping[str, Any], evidence: str, ctx: StepContext) -> None:
    """Raise SearchNotConfirmed if `submit` is a link, and all that happened is that it led to
    another page.
    """
    match = (ctx.earlier[SUBMIT].output or {}).get("match") or {}
    address, before = (str(url).partition("#")[0] for url in (page["url"], _opened(ctx)["url"]))
    if match.get("type") == "link" and evidence == "page" and address != before:
        raise SearchNotConfirmed(
            f"The link “{match.get('label')}” was followed, and nothing shows that it searched: no"
            " request and no address has the query.",
            details={"reason": "link_followed", "url": page["url"]},
        )


def _opened(ctx: StepContext) -> Mapping[str, Any]:
    return ctx.earlier[0].output or {"url": ""}
