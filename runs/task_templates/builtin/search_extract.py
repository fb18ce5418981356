"""Search on a site and read what it finds, or one of its results (runs.md, `search_extract`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, Field

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

JUST_TITLE = {"pageInfo": False, "content": False}


class SearchExtractInputs(Closed):
    """Where to search, for what, and what to do with the results."""

    start_url: StartUrl = Field(alias="startUrl")
    query: str = Field(min_length=1, max_length=2000, description="What to search for.")
    search_field: Locator = Field(
        alias="searchField", description="The field that takes the query."
    )
    submit: Locator | None = Field(
        default=None,
        description="The button that starts the search; without it the form's own, or Enter.",
    )
    open_result: Locator | None = Field(
        default=None,
        alias="openResult",
        description="The result to open and read; of several that fit alike, the first. Without it"
        " the list of results is read.",
    )
    wait_for_results: WaitCondition | None = Field(
        default=None, alias="waitForResults", description="What is true when the results are there."
    )
    extract: Extract = None


@register
class SearchExtract(TaskTemplate):
    """Five steps on one page: open, enter, submit, wait, read."""

    template_id = "search_extract"
    name = "Search and read"
    description = (
        "Open a page, type a query into its search field, submit it, wait for the results and read"
        " them, or open one of them and read that. Fields, buttons and results are found by CSS"
        " selector or by words in English or Chinese."
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
        "required": ["success", "finalPage", "query", "resultOpened", "pageInfo", "content"],
    }
    uses_browser = True
    shares_page = True
    step_timeout_ms = STEP_MS
    limits = {"maxSteps": 5, "maxQueryLength": 2000, "maxWaitMs": 120_000}

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return the five steps."""
        last = "open a result and read it" if inputs.get("openResult") else "read the results"
        again = Effect.AT_LEAST_ONCE  # a search changes nothing: it may be submitted again
        return [
            StepPlan("open the page", {"do": "open", "url": inputs["startUrl"]}),
            StepPlan("enter the query", {"do": "enter"}, again),
            StepPlan("submit the search", {"do": "submit"}, again),
            StepPlan("wait for the results", {"do": "wait"}),
            StepPlan(last, {"do": "read"}, again),
        ]

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Do one of the five."""
        inputs, what = ctx.inputs, step.input["do"]
        if what == "open":
            return await ctx.call("open_page", {"url": step.input["url"]})
        if what == "enter":
            asked = {"locator": inputs["searchField"], "value": inputs["query"]}
            return await ctx.call("fill_field", asked)
        if what == "submit":
            button = inputs.get("submit")
            return await ctx.call("submit_form", {"locator": button} if button else {})
        if what == "wait":
            condition = inputs.get("waitForResults")
            asked = {"extract": JUST_TITLE, **({"waitFor": condition} if condition else {})}
            return await ctx.call("read_current_page", asked)
        opened: Mapping[str, Any] = {}
        if inputs.get("openResult"):
            opened = await ctx.call("click_element", {"locator": inputs["openResult"]})
        read = await ctx.call("read_current_page", extract_of(inputs))
        return {**read, "match": opened.get("match")}

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return what was read in the end."""
        broken = failed_step(steps)
        if broken is not None:
            return failed_conclusion(broken, template_id=self.template_id, inputs=inputs)
        read = steps[-1].output
        if read is None:  # the run's time was up before
            return Conclusion(RunStatus.FAILED)
        opened = read.get("match") is not None
        result = {
            "success": True,
            "finalPage": final_page(read),
            "query": inputs["query"],
            "resultOpened": opened,
            "pageInfo": read.get("pageInfo"),
            "content": read.get("content"),
        }
        what = "opened and read a result" if opened else "read the results"
        return Conclusion(
            RunStatus.SUCCEEDED,
            result=result,
            summary=f"Searched for “{inputs['query'][:100]}” and {what}: {read.get('title')}",
            warnings=warnings_of(steps),
        )
