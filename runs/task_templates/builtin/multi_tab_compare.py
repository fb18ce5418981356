"""The template `multi_tab_compare`: read a few pages side by side and return how they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, Field

from runners.tools.base import Closed, Whole
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView, TaskTemplate
from runs.task_templates.outcomes import common_error, next_actions, warnings_of_items
from runs.task_templates.page_inputs import (
    PAGE_RESULT,
    Extract,
    OnHttpError,
    PageUrl,
    check_http_status,
    status_of,
)
from runs.task_templates.page_texts import kept_page, shown_characters
from runs.task_templates.registry import register
from runs.task_templates.subjects import pages_of

TOP_SECTIONS = 3
Compared = Literal["title", "elementCount", "topSections"]
FIELDS: tuple[Compared, ...] = ("title", "elementCount", "topSections")


class Compare(Closed):
    """What to compare, and with which tolerance."""

    fields: list[Compared] = Field(
        default=list(FIELDS),
        min_length=1,
        max_length=3,
        description=_("All three by default."),
        json_schema_extra={"uniqueItems": True},
    )
    top_sections: Whole = Field(
        default=TOP_SECTIONS,
        ge=1,
        le=20,
        alias="topSections",
        description=_("How many headings of each page are compared."),
    )
    numeric_tolerance: float = Field(
        default=0,
        ge=0,
        le=1_000_000,
        alias="numericTolerance",
        description=_("Element counts that differ by no more than this count as equal."),
    )


class MultiTabCompareInputs(Closed):
    """The inputs of `multi_tab_compare`: the pages, and what to compare."""

    urls: list[PageUrl] = Field(
        min_length=2,
        max_length=10,
        description=_("Different http(s) URLs; each is one step of the run."),
        json_schema_extra={"uniqueItems": True},
    )
    extract: Extract = None
    compare: Compare | None = Field(default=None, description=_("By default all fields, exactly."))
    concurrency: Whole = Field(default=3, ge=1, le=5, description=_("Tabs that work at once."))
    on_http_error: OnHttpError = "fail"


@register
class MultiTabCompare(TaskTemplate):
    """One step per URL, and a last one that compares their outputs."""

    template_id = "multi_tab_compare"
    name = _("Compare pages")
    description = _(
        "Open two to ten pages side by side and return a snapshot of each and how they differ:"
        " title, number of usable elements, first headings of the whole text. Pages that fail are"
        " reported one by one; the others are compared. The texts are compared by reading them:"
        " read_page_content reads and searches the whole text of each page."
    )
    inputs_model: ClassVar[type[BaseModel]] = MultiTabCompareInputs
    example_inputs = (
        {"urls": ["https://example.com/", "https://example.org/"]},
        {
            "urls": ["https://example.com/", "https://example.org/"],
            "compare": {"fields": ["title", "elementCount"], "numericTolerance": 2},
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
                    "differences": {"type": "integer"},
                    "comparedFields": {"type": "array", "items": {"enum": list(FIELDS)}},
                },
                "required": ["total", "succeeded", "failed", "differences", "comparedFields"],
            },
            "snapshots": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "url": {"type": "string"},
                        "topSections": {"type": "array", "items": {"type": "string"}},
                        **PAGE_RESULT,
                    },
                    "required": ["url", "success"],
                },
            },
            "diffs": {
                "type": "array",
                "description": "Only fields that differ.",
                "items": {
                    "type": "object",
                    "properties": {
                        "field": {"enum": list(FIELDS)},
                        "same": {"const": False},
                        "values": {"type": "object", "description": "By url."},
                        "delta": {"type": "integer", "description": "Greatest minus smallest."},
                        "changedPositions": {
                            "type": "array",
                            "items": {"type": "integer"},
                            "description": "Indexes in topSections that differ; 0 is the first.",
                        },
                    },
                    "required": ["field", "same", "values"],
                },
            },
        },
        "required": ["summary", "snapshots", "diffs"],
    }
    uses_browser = True
    last_step_waits = True
    stops_at_failed_step = False
    step_retries = 1
    limits = {"minUrls": 2, "maxUrls": 10, "maxTopSections": 20, "maxConcurrency": 5}

    def subject(self, inputs: Mapping[str, Any]) -> str:
        """Return the hosts and the number of pages."""
        return pages_of(inputs["urls"])

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return one reading step per URL, and the comparison."""
        reads = [StepPlan(f"read {url[:150]}", {"url": url}) for url in inputs["urls"]]
        return [*reads, StepPlan(f"compare {len(reads)} pages", {"do": "compare"})]

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Read one page, or compare those that were read."""
        if step.input.get("do") == "compare":
            pages = [step for step in ctx.earlier if step.succeeded]
            return {"diffs": differences(pages, _rules(ctx.inputs))}
        extract = {**(ctx.inputs.get("extract") or {"pageInfo": False}), "content": True}
        args = {"url": step.input["url"], "extract": extract, "whole": True}
        page = kept_page(await ctx.call("read_page", args), len(ctx.inputs["urls"]))
        await check_http_status(page, ctx.inputs, ctx)
        return _snapshot(page, ctx.inputs, _rules(ctx.inputs).top_sections)

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return the snapshots, and the fields that differ."""
        reads, last = steps[:-1], steps[-1]
        items = [
            {
                "url": step.input["url"],
                "content": None,
                **(step.output or {}),
                "httpStatus": status_of(step.output, step.error),
                "success": step.succeeded,
                "error": step.error,
            }
            for step in reads
        ]
        succeeded = sum(step.succeeded for step in reads)
        if not succeeded:
            error = common_error(items, reads)
            actions = next_actions(error, template_id=self.template_id, inputs=inputs, again=True)
            return Conclusion(
                RunStatus.FAILED, error=error, summary="No page could be read", next_actions=actions
            )
        diffs = (last.output or {}).get("diffs", [])
        findings = [f"{diff['field']} differs" for diff in diffs] or ["no difference"]
        warnings = warnings_of_items(reads)
        if succeeded == 1:
            warnings.insert(0, "Only one page could be read: there was nothing to compare it with.")
            findings = ["nothing to compare"]
        failed = len(items) - succeeded
        counts = {"total": len(items), "succeeded": succeeded, "failed": failed}
        fields = list(_rules(inputs).fields)
        return Conclusion(
            RunStatus.PARTIAL_SUCCESS if failed or not last.succeeded else RunStatus.SUCCEEDED,
            result={
                "summary": {**counts, "differences": len(diffs), "comparedFields": fields},
                "snapshots": items,
                "diffs": diffs,
            },
            summary=f"{succeeded} of {len(items)} pages compared: {', '.join(findings)}",
            warnings=warnings,
            shown_characters=shown_characters(inputs) if inputs.get("extract") else 0,
        )

    def concurrency(self, inputs: Mapping[str, Any]) -> int:
        """Return the requested number of tabs."""
        return int(inputs.get("concurrency", 3))


def _rules(inputs: Mapping[str, Any]) -> Compare:
    return Compare.model_validate(inputs.get("compare") or {})


def _snapshot(
    page: Mapping[str, Any], inputs: Mapping[str, Any], top_sections: int
) -> dict[str, Any]:
    headings = [section["heading"] for section in page["content"]["sections"]]
    keeps_content = (inputs.get("extract") or {}).get("content", True)
    return {
        "title": page["title"],
        "pageType": page["pageType"],
        "elementCount": page["elementCount"],
        "httpStatus": page["httpStatus"],
        "topSections": [heading for heading in headings if heading][:top_sections],
        "pageInfo": page["pageInfo"],
        "content": page["content"] if keeps_content else None,
        "warnings": page["warnings"],
    }


def differences(pages: Sequence[StepView], rules: Compare) -> list[dict[str, Any]]:
    """Return the fields in which the pages differ, with their values by URL."""
    if len(pages) < 2:
        return []
    diffs = []
    for field in rules.fields:
        values = {str(page.input["url"]): (page.output or {})[field] for page in pages}
        details = _difference(field, list(values.values()), rules.numeric_tolerance)
        if details is not None:
            diffs.append({"field": field, "same": False, "values": values, **details})
    return diffs


def _difference(field: str, values: list[Any], tolerance: float) -> dict[str, Any] | None:
    """Return details of a difference between the values; None if they are equal."""
    if field == "elementCount":
        delta = max(values) - min(values)
        return {"delta": delta} if delta > tolerance else None
    if all(value == values[0] for value in values):
        return None
    if field == "title":
        return {}
    longest = max(len(value) for value in values)
    rows = [[value[n] if n < len(value) else None for value in values] for n in range(longest)]
    return {"changedPositions": [n for n, row in enumerate(rows) if len(set(row)) > 1]}
