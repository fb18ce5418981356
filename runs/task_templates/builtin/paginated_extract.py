"""Read a list that goes over several pages (runs.md, `paginated_extract`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from runners.browser.parameters import Locator, WaitCondition
from runners.tools.base import Closed, Effect, Whole
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView, TaskTemplate
from runs.task_templates.outcomes import failed_conclusion, failed_step, run_error, warnings_of
from runs.task_templates.page_inputs import (
    CONTENT,
    PAGE_INFO,
    STEP_MS,
    Extract,
    StartUrl,
    extract_of,
)
from runs.task_templates.registry import register

SYNC_PAGES = 10
NEXT_MS = 1000  # the page is at rest: what is not there then will not come
READ = ("url", "title", "pageType", "elementCount", "pageInfo", "content", "httpStatus", "warnings")
STOPS = {
    "repeated_page": "the page after it says the same as one before",
    "next_unavailable": "there is no next page",
}


class Pagination(Closed):
    """How to get from one page to the next."""

    next: Locator = Field(description="What to press for the next page.")
    max_pages: Whole = Field(
        ge=1, le=50, alias="maxPages", description="Pages to read at most, the first included."
    )
    wait_for: WaitCondition | None = Field(
        default=None, alias="waitFor", description="What is true when a page is there."
    )


class PaginatedExtractInputs(Closed):
    """Where the list begins, and how it goes on."""

    start_url: StartUrl = Field(alias="startUrl")
    pagination: Pagination
    extract: Extract = None


@register
class PaginatedExtract(TaskTemplate):
    """One step a page; pages that never come are skipped, and pages that were read are kept."""

    template_id = "paginated_extract"
    name = "Read a paginated list"
    description = (
        "Open a list, read its page, press “next” and go on until maxPages, a page that repeats, or"
        " no next page. Works for links and for lists that a script fills. Pages that were read are"
        " kept when a later one fails."
    )
    inputs_model: ClassVar[type[BaseModel]] = PaginatedExtractInputs
    example_inputs = (
        {
            "startUrl": "https://example.com/list",
            "pagination": {"next": {"mode": "semantic", "query": "next page"}, "maxPages": 5},
        },
        {
            "startUrl": "https://example.com/list",
            "pagination": {
                "next": {"mode": "selector", "selector": "a[rel=next]"},
                "maxPages": 20,
                "waitFor": {"type": "selector", "value": ".item"},
            },
            "extract": {"pageInfo": False, "content": True},
        },
    )
    result_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "summary": {
                "type": "object",
                "properties": {
                    "pagesRead": {"type": "integer"},
                    "failed": {"type": "integer"},
                    "maxPages": {"type": "integer"},
                },
                "required": ["pagesRead", "failed", "maxPages"],
            },
            "pages": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "page": {"type": "integer", "description": "1 is the first."},
                        "url": {"type": ["string", "null"]},
                        "title": {"type": ["string", "null"]},
                        "pageType": {"type": ["string", "null"]},
                        "elementCount": {"type": "integer"},
                        "pageInfo": PAGE_INFO,
                        "content": CONTENT,
                        "success": {"type": "boolean"},
                        "error": {"type": ["object", "null"]},
                    },
                    "required": ["page", "success", "error"],
                },
            },
            "stoppedReason": {
                "enum": ["max_pages", "repeated_page", "next_unavailable", None],
                "description": "null where a page failed.",
            },
        },
        "required": ["summary", "pages", "stoppedReason"],
    }
    uses_browser = True
    shares_page = True
    step_timeout_ms = STEP_MS
    limits = {"maxPages": 50, "maxWaitMs": 120_000}

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return a step for each page that there may be."""
        pages = range(2, inputs["pagination"]["maxPages"] + 1)
        first = StepPlan("read page 1", {"page": 1, "url": inputs["startUrl"]})
        again = Effect.AT_LEAST_ONCE  # going to the next page may be done again
        return [first, *(StepPlan(f"read page {n}", {"page": n}, again) for n in pages)]

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Go to a page and read it, and look whether there is one after it."""
        asked = ctx.inputs["pagination"]
        waits = {"waitFor": asked["waitFor"]} if asked.get("waitFor") else {}
        args = extract_of(ctx.inputs) | waits
        if step.input["page"] == 1:
            await ctx.call("open_page", {"url": step.input["url"]})
            before: list[str] = []
            pressed: Mapping[str, Any] = {}
        else:
            pressed = await ctx.call("click_element", {"locator": asked["next"]})
            before = [(done.output or {}).get("fingerprint", "") for done in ctx.earlier]
            args["unlike"] = before[-1]
        read = await ctx.call("read_current_page", args)
        told = {"fingerprint": read["fingerprint"], "match": pressed.get("match")}
        if read["fingerprint"] in before:
            return {**told, "stop": "repeated_page", "warnings": []}
        told |= {key: read.get(key) for key in READ}
        return {**told, **(await self._look_ahead(step, ctx, told))}

    async def _look_ahead(
        self, step: StepPlan, ctx: StepContext, read: Mapping[str, Any]
    ) -> dict[str, Any]:
        asked = ctx.inputs["pagination"]
        if step.input["page"] == asked["maxPages"]:
            return {"stop": "max_pages"}
        look = {"locator": asked["next"], "purpose": "clickable", "timeoutMs": NEXT_MS}
        found = await ctx.call("find_element", {**look, "required": False})
        if found["match"] is not None:
            return {"stop": None, "next": found["match"]}
        if step.input["page"] > 1:
            return {"stop": "next_unavailable"}
        labels = ", ".join(f"“{one['label']}”" for one in found["candidates"] if one["label"])
        near = f" What comes nearest: {labels}." if labels else ""
        warning = f"There is nothing on page 1 that leads to a next page.{near}"
        return {"stop": "next_unavailable", "warnings": [*read["warnings"], warning]}

    def skip_reason(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> str:
        """Say why no page comes after those that were read."""
        done = [step for step in steps if step.succeeded]
        return STOPS.get((done[-1].output or {}).get("stop") or "", "") if done else ""

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return the pages, as far as they came."""
        broken = failed_step(steps)
        done = [step for step in steps if step.succeeded]
        pages = [_page(step) for step in done if "url" in (step.output or {})]
        if not pages:
            if broken is None:  # the run's time was up before
                return Conclusion(RunStatus.FAILED)
            return failed_conclusion(broken, template_id=self.template_id, inputs=inputs)
        if broken is not None:
            pages.append(_page(broken))
        read = sum(page["success"] for page in pages)
        counts = {"pagesRead": read, "failed": len(pages) - read}
        stop = None if broken else (done[-1].output or {}).get("stop")
        summary = f"{read} page{'s' if read > 1 else ''} read; " + (
            f"then '{broken.name}' failed" if broken else STOPS.get(stop or "", "maxPages reached")
        )
        return Conclusion(
            RunStatus.PARTIAL_SUCCESS if broken else RunStatus.SUCCEEDED,
            result={
                "summary": {**counts, "maxPages": inputs["pagination"]["maxPages"]},
                "pages": pages,
                "stoppedReason": stop,
            },
            summary=summary,
            warnings=warnings_of(steps),
        )

    def prefers_sync(self, inputs: Mapping[str, Any]) -> bool:
        """Wait for a handful of pages."""
        return int(inputs["pagination"]["maxPages"]) <= SYNC_PAGES


def _page(step: StepView) -> dict[str, Any]:
    read = step.output or {}
    return {
        "page": step.input["page"],
        "url": read.get("url"),
        "title": read.get("title"),
        "pageType": read.get("pageType"),
        "elementCount": read.get("elementCount", 0),
        "pageInfo": read.get("pageInfo"),
        "content": read.get("content"),
        "success": step.succeeded,
        "error": run_error(step) if step.error else None,
    }
