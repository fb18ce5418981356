"""The template `batch_extract_pages`: read the elements and text of many pages, several at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, Field

from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal
from runners.browser.parameters import ExtractOptions
from runners.paired_browser.choice import SELECTED, with_paired_browser
from runners.targets.targets import Caller
from runners.tools.base import Closed
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView, TaskTemplate
from runs.task_templates.outcomes import (
    MAX_TIMEOUT_MS,
    common_error,
    next_actions,
    warnings_of_items,
)
from runs.task_templates.page_inputs import (
    PAGE_RESULT,
    OnHttpError,
    check_http_status,
    extract_of,
    status_of,
)
from runs.task_templates.page_texts import kept_page, shown_characters
from runs.task_templates.paired_browser import (
    SelectedClientId,
    close_task_tabs,
    read_in_paired_browser,
)
from runs.task_templates.registry import register
from runs.task_templates.subjects import pages_of

SHARED_URLS = 30  # idle workers take steps of batches from this size on
RESUBMIT_MAX_URLS = 50  # in a next action; a longer list would fill the answer
SYNC_URLS = 10  # mode auto waits for the result of batches up to this size


class BatchExtractPagesInputs(Closed):
    """The inputs of `batch_extract_pages`: the URLs, and how much of each page to return."""

    urls: list[Annotated[str, Field(min_length=1, max_length=8192)]] = Field(
        min_length=1, max_length=1000, description=_("http(s) URLs; each is one step of the run.")
    )
    extract: ExtractOptions | None = Field(
        default=None, description=_("How much of each page to return.")
    )
    concurrency: int = Field(default=3, ge=1, le=5, description=_("Tabs that work at once."))
    on_http_error: OnHttpError = "fail"
    target_id: str | None = Field(
        default=None,
        alias="targetId",
        min_length=1,
        max_length=64,
        description=_("plugin, or a plc_… id: your paired browser, as selectedClientId."),
    )
    selected_client_id: SelectedClientId = None


@register
class BatchExtractPages(TaskTemplate):
    """One step per URL; a page that cannot be read is a failed item, and does not end the run."""

    template_id = "batch_extract_pages"
    name = _("Read a batch of pages")
    description = _(
        "Open each url in a real browser and return its title, type, interactive elements"
        " and readable text in sections."
        " Pages that fail are reported item by item; the others are returned. The run keeps the"
        " whole text of each page: read_page_content reads and searches it."
    )
    inputs_model: ClassVar[type[BaseModel]] = BatchExtractPagesInputs
    example_inputs = (
        {"urls": ["https://example.com/"]},
        {
            "urls": ["https://example.com/", "https://example.org/"],
            "concurrency": 2,
            "extract": {"pageInfo": False, "content": True, "maxContentLength": 8000},
        },
    )
    result_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "summary": {
                "type": "object",
                "properties": {
                    "total": {"type": "integer"},
                    "succeeded": {"type": "integer"},
                    "failed": {"type": "integer"},
                },
                "required": ["total", "succeeded", "failed"],
            },
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "url": {"type": "string"},
                        "contentSections": {"type": "integer"},
                        **PAGE_RESULT,
                    },
                    "required": ["url", "success"],
                },
            },
        },
        "required": ["summary", "items"],
    }
    uses_browser = True
    closes_tabs = True
    stops_at_failed_step = False
    step_retries = 1
    limits = {"maxUrls": 1000, "maxConcurrency": 5}

    def subject(self, inputs: Mapping[str, Any]) -> str:
        """Return the page, or the hosts and the number of pages."""
        return pages_of(inputs["urls"])

    def complete_inputs(self, inputs: Mapping[str, Any], principal: Principal) -> Mapping[str, Any]:
        """Return the inputs with the caller's paired browser, if they choose one.

        Raises:
            InvalidInput: targetId is no browser.
            TargetNotFound, NoBrowserPaired: As `paired_browser.choice.with_paired_browser`.
        """
        complete = with_paired_browser(Caller.of(principal), inputs)
        if "targetId" in complete:
            raise InvalidInput("inputs.targetId: it has to be plugin, or a plc_… id.")
        return complete

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return one reading step per URL, in the given order; in a paired browser also one that
        closes the tabs.
        """
        steps = [StepPlan(f"read {url[:150]}", {"url": url}) for url in inputs["urls"]]
        return [*steps, StepPlan("close the tabs", {})] if SELECTED in inputs else steps

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Read one page, or close the tabs."""
        if "url" not in step.input:
            return await close_task_tabs(ctx)
        count = len(ctx.inputs["urls"])
        if SELECTED in ctx.inputs:
            title = f"Continuity: {count} pages"
            page = await read_in_paired_browser(
                step.input["url"], ctx.inputs, ctx, group_title=title
            )
        else:
            args = {"url": step.input["url"], **extract_of(ctx.inputs)}
            page = dict(await ctx.call("read_page", args))
        return await check_http_status(kept_page(page, count), ctx.inputs, ctx)

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return every item, and a status by whether all, some or no pages were read."""
        steps = [step for step in steps if "url" in step.input]
        items = [_item(step) for step in steps]
        succeeded = sum(step.succeeded for step in steps)
        failed = len(items) - succeeded
        counts = {"total": len(items), "succeeded": succeeded, "failed": failed}
        summary = f"{succeeded} of {len(items)} pages read" + _exceptions(items, failed)
        actions = _read_again(self.template_id, inputs, steps)
        if not succeeded:
            error = common_error(items, steps)
            actions = actions or next_actions(
                error, template_id=self.template_id, inputs=inputs, again=True
            )
            return Conclusion(RunStatus.FAILED, error=error, summary=summary, next_actions=actions)
        return Conclusion(
            RunStatus.PARTIAL_SUCCESS if failed else RunStatus.SUCCEEDED,
            result={"summary": counts, "items": items},
            summary=summary,
            warnings=warnings_of_items(steps),
            next_actions=actions,
            shown_characters=shown_characters(inputs),
        )

    def concurrency(self, inputs: Mapping[str, Any]) -> int:
        """Return the requested number of tabs; in the caller's paired browser one."""
        return 1 if SELECTED in inputs else int(inputs.get("concurrency", 3))

    def shares_steps(self, inputs: Mapping[str, Any]) -> bool:
        """Share a batch of SHARED_URLS or more among the workers, not one in a single browser."""
        return SELECTED not in inputs and len(inputs["urls"]) >= SHARED_URLS

    def prefers_sync(self, inputs: Mapping[str, Any]) -> bool:
        """Wait for up to SYNC_URLS pages."""
        return len(inputs["urls"]) <= SYNC_URLS


def _read_again(
    template_id: str, inputs: Mapping[str, Any], steps: Sequence[StepView]
) -> list[dict[str, Any]]:
    """Return the call that reads the missing pages again, if a retry may help and they are few."""
    urls = [
        step.input["url"]
        for step in steps
        if not step.succeeded and (step.error is None or step.error.get("retryable"))
    ]
    if not 0 < len(urls) <= RESUBMIT_MAX_URLS:
        return []
    args = {
        "templateId": template_id,
        "inputs": {**inputs, "urls": urls},
        "options": {"mode": "async", "timeoutMs": MAX_TIMEOUT_MS},
    }
    rest = "" if len(urls) == len(steps) else "; the others stay in this run's result"
    reason = f"Read the {len(urls)} missing pages again{rest}."
    return [{"tool": "run_task_template", "args": args, "reason": reason}]


def _exceptions(items: Sequence[Mapping[str, Any]], failed: int) -> str:
    kept = sum(item["success"] and (item["httpStatus"] or 200) >= 400 for item in items)
    errors = f", {kept} of them with an HTTP error status" if kept else ""
    return errors + (f", {failed} failed" if failed else "")


def _item(step: StepView) -> dict[str, Any]:
    page = step.output or {}
    return {
        "url": step.input["url"],
        "title": page.get("title"),
        "pageType": page.get("pageType"),
        "elementCount": page.get("elementCount", 0),
        "contentSections": page.get("contentSections", 0),
        "content": page.get("content"),
        "pageInfo": page.get("pageInfo"),
        "httpStatus": status_of(step.output, step.error),
        "success": step.succeeded,
        "error": step.error,
    }
