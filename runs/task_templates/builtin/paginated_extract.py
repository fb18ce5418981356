"""The template `paginated_extract`: read a list that continues over several pages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, Field

from runners.browser.parameters import Locator, WaitCondition
from runners.tools.base import Closed, Effect, Whole
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView, TaskTemplate
from runs.task_templates.outcomes import failed_conclusion, failed_step, run_error, warnings_of
from runs.task_templates.page_inputs import (
    PAGE_RESULT,
    STEP_MS,
    Extract,
    OnHttpError,
    StartUrl,
    check_http_status,
    extract_of,
    status_of,
    waiting_for,
)
from runs.task_templates.page_texts import kept_page, shown_characters
from runs.task_templates.registry import register
from runs.task_templates.subjects import place_of, subject_line

SYNC_PAGES = 10  # mode auto waits for the result of lists up to this size
NEXT_MS = 1000  # to find the next link; short, because the page has already loaded
READ = ("url", "title", "pageType", "elementCount", "pageInfo", "content", "httpStatus", "warnings")
STOPS = {
    "repeated_page": "the page after it repeats an earlier one",
    "next_unavailable": "there is no next page",
}


UNCHANGED = (
    "The next page was clicked, and the page did not change in time: the list may have more pages."
)
# “Page 2 of 6”, “2 / 6 pages”, “第2页/共6页”
PAGE_OF = re.compile(
    r"\b[Pp](?:age|\.) ?(\d{1,9}) (?:of|/) ?(\d{1,9})\b|第 ?(\d{1,9}) ?页.{0,5}共 ?(\d{1,9}) ?页"
)


class Pagination(Closed):
    """How to get from one page to the next."""

    next: Locator = Field(description=_("What to click for the next page."))
    max_pages: Whole = Field(
        ge=1, le=50, alias="maxPages", description=_("Pages to read at most, the first included.")
    )
    wait_for: WaitCondition | None = Field(
        default=None,
        alias="waitFor",
        description=_("A condition that holds once a page has loaded."),
    )


class PaginatedExtractInputs(Closed):
    """The inputs of `paginated_extract`: the first page, and how to get to the next ones."""

    start_url: StartUrl = Field(alias="startUrl")
    pagination: Pagination
    extract: Extract = None
    on_http_error: OnHttpError = "fail"


@register
class PaginatedExtract(TaskTemplate):
    """One step per page up to maxPages; the steps after the last existing page are skipped."""

    template_id = "paginated_extract"
    name = _("Read a paginated list")
    description = _(
        "Open a list, read its page, click “next” and continue until maxPages, a page that repeats,"
        " or no next page; stoppedReason says which; a warning, if the list seems to go on. Works"
        " for links and for lists that a script fills. If a page fails, the pages before it are"
        " still returned."
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
                        **PAGE_RESULT,
                    },
                    "required": ["page", "success"],
                },
            },
            "stoppedReason": {
                "enum": ["max_pages", "repeated_page", "next_unavailable", None],
                "description": "null if a page failed.",
            },
        },
        "required": ["summary", "pages", "stoppedReason"],
    }
    uses_browser = True
    shares_page = True
    step_timeout_ms = STEP_MS
    limits = {"maxPages": 50, "maxWaitMs": 120_000}

    def subject(self, inputs: Mapping[str, Any]) -> str:
        """Return the list and how many of its pages are read."""
        pages = inputs["pagination"]["maxPages"]
        return subject_line(place_of(inputs["startUrl"]), f"up to {pages} pages")

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return a step for each page up to maxPages."""
        pages = range(2, inputs["pagination"]["maxPages"] + 1)
        first = StepPlan("read page 1", {"page": 1, "url": inputs["startUrl"]})
        effect = Effect.AT_LEAST_ONCE  # the click on “next” may be repeated
        return [first, *(StepPlan(f"read page {n}", {"page": n}, effect) for n in pages)]

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Go to a page, read it, and find out whether there is a next one."""
        pagination = ctx.inputs["pagination"]
        args = {**extract_of(ctx.inputs), "isCompared": True}
        args |= waiting_for("pagination.waitFor", pagination.get("waitFor"))
        if step.input["page"] == 1:
            await ctx.call("open_page", {"url": step.input["url"]})
            fingerprints: list[str] = []
            clicked: Mapping[str, Any] = {}
        else:
            clicked = await ctx.call("click_element", {"locator": pagination["next"]})
            fingerprints = [(done.output or {}).get("fingerprint", "") for done in ctx.earlier]
            args["unlike"] = fingerprints[-1]
        page = await ctx.call("read_current_page", args)
        output = {"fingerprint": page["fingerprint"], "match": clicked.get("match")}
        if page["fingerprint"] in fingerprints:
            is_unchanged = page["fingerprint"] == fingerprints[-1]
            return {
                **output,
                "stop": "repeated_page",
                "warnings": [UNCHANGED] if is_unchanged else [],
            }
        page = kept_page(page, pagination["maxPages"])
        await check_http_status(page, ctx.inputs, ctx)
        output |= {key: page.get(key) for key in READ}
        return {**output, **(await self._find_next(step, ctx, output))}

    async def _find_next(
        self, step: StepPlan, ctx: StepContext, page: Mapping[str, Any]
    ) -> dict[str, Any]:
        pagination = ctx.inputs["pagination"]
        if step.input["page"] == pagination["maxPages"]:
            return {"stop": "max_pages"}
        args = {"locator": pagination["next"], "purpose": "clickable", "timeoutMs": NEXT_MS}
        found = await ctx.call("find_element", {**args, "required": False})
        if found["match"] is not None:
            return {"stop": None, "next": found["match"]}
        if step.input["page"] > 1:
            return {
                "stop": "next_unavailable",
                "warnings": [*page["warnings"], *_more_pages_named(page)],
            }
        labels = ", ".join(
            f"“{candidate['label']}”" for candidate in found["candidates"] if candidate["label"]
        )
        closest = f" The closest elements are {labels}." if labels else ""
        warning = f"No element on page 1 fits pagination.next.{closest}"
        return {"stop": "next_unavailable", "warnings": [*page["warnings"], warning]}

    def skip_reason(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> str:
        """Return why there are no pages after those that were read, or ""."""
        done = [step for step in steps if step.succeeded]
        return STOPS.get((done[-1].output or {}).get("stop") or "", "") if done else ""

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return the pages that were read, and the error of the one that failed."""
        failed = failed_step(steps)
        done = [step for step in steps if step.succeeded]
        pages = [_page(step) for step in done if "url" in (step.output or {})]
        if not pages:
            if failed is None:  # the run timed out before
                return Conclusion(RunStatus.FAILED)
            return failed_conclusion(failed, template_id=self.template_id, inputs=inputs)
        if failed is not None:
            pages.append(_page(failed))
        read = sum(page["success"] for page in pages)
        counts = {"pagesRead": read, "failed": len(pages) - read}
        stop = None if failed else (done[-1].output or {}).get("stop")
        summary = f"{read} page{'s' if read > 1 else ''} read; " + (
            f"then '{failed.name}' failed" if failed else STOPS.get(stop or "", "maxPages reached")
        )
        return Conclusion(
            RunStatus.PARTIAL_SUCCESS if failed else RunStatus.SUCCEEDED,
            result={
                "summary": {**counts, "maxPages": inputs["pagination"]["maxPages"]},
                "pages": pages,
                "stoppedReason": stop,
            },
            summary=summary,
            warnings=warnings_of(steps),
            shown_characters=shown_characters(inputs),
        )

    def prefers_sync(self, inputs: Mapping[str, Any]) -> bool:
        """Wait for up to SYNC_PAGES pages."""
        return int(inputs["pagination"]["maxPages"]) <= SYNC_PAGES


def _more_pages_named(page: Mapping[str, Any]) -> list[str]:
    """Return a warning if the page says that it is not the last one."""
    sections = (page.get("content") or {}).get("sections", [])
    for found in PAGE_OF.finditer("\n".join(section["text"] for section in sections)):
        number, last = (int(group) for group in found.groups() if group is not None)
        if number < last:
            return [
                f"The page says “{found.group()}”, but nothing on it fits pagination.next: the list"
                " is not complete."
            ]
    return []


def _page(step: StepView) -> dict[str, Any]:
    output = step.output or {}
    return {
        "page": step.input["page"],
        "url": output.get("url"),
        "title": output.get("title"),
        "pageType": output.get("pageType"),
        "elementCount": output.get("elementCount", 0),
        "httpStatus": status_of(step.output, step.error),
        "pageInfo": output.get("pageInfo"),
        "content": output.get("content"),
        "success": step.succeeded,
        "error": run_error(step) if step.error else None,
    }
