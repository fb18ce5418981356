"""Failed runs grouped by cause: how many of each, how that changes over time, and which runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import CharField, Count, F, Max, QuerySet
from django.db.models.functions import Cast, Substr
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from decisions.presentation.visible_text import visible
from runs.models import HOST_ACTION, Run, RunStatus

GROUPS_MAX = 100
EXAMPLES = 3  # runs that a group names
READ_FOR_EXAMPLES = 400  # of the newest failures


@dataclass(frozen=True, slots=True)
class Span:
    """A time that the page shows, divided into parts of equal length.

    Attributes:
        characters: of a time as text that all times of one part have in common.
    """

    label: Any
    part: timedelta
    parts: int
    characters: int
    form: str

    def starts(self, now: datetime) -> list[datetime]:
        """Return the starts of the parts, the oldest first; the last part contains `now`."""
        hour = 0 if self.part >= timedelta(days=1) else now.hour
        last = now.replace(hour=hour, minute=0, second=0, microsecond=0)
        return [last - self.part * number for number in range(self.parts - 1, -1, -1)]


SPANS = {
    "day": Span(_("Last 24 hours"), timedelta(hours=1), 24, 13, "%Y-%m-%d %H"),
    "week": Span(_("Last 7 days"), timedelta(days=1), 7, 10, "%Y-%m-%d"),
    "month": Span(_("Last 30 days"), timedelta(days=1), 30, 10, "%Y-%m-%d"),
}


@dataclass(slots=True)
class FailureGroup:
    """The failed runs of a template with one cause."""

    template_id: str
    error_code: str
    error_cause: str
    counts: Counter[str] = field(default_factory=Counter)
    last_at: datetime | None = None
    examples: list[Run] = field(default_factory=list)

    @property
    def number(self) -> int:
        """How many runs failed so."""
        return self.counts.total()

    @property
    def cause(self) -> str:
        """The code that says most: the cause of the error, else its code."""
        return self.error_cause or self.error_code


def failures_context(request: HttpRequest, runs: QuerySet[Run]) -> dict[str, Any]:
    """Return the context of the page of failures; two queries that read the failed runs of the time
    through the index run_ended_badly.
    """
    key = request.GET.get("time", "")
    key = key if key in SPANS else "day"
    span, now = SPANS[key], datetime.now(UTC)
    starts = span.starts(now)
    failed = runs.filter(status=RunStatus.FAILED, created_at__gte=starts[0])
    if request.GET.get("actions") != "shown":
        failed = failed.exclude(template_id=HOST_ACTION)
    groups = _groups(failed, span)
    _add_examples(failed, groups)
    shown = sorted(groups.values(), key=lambda group: (-group.number, group.cause))[:GROUPS_MAX]
    tallest = max((max(group.counts.values()) for group in shown), default=0)
    return {
        "spans": [(name, one.label, name == key) for name, one in SPANS.items()],
        "span_label": span.label,
        "total": sum(group.number for group in groups.values()),
        "groups": [_row(group, span, starts, tallest) for group in shown],
        "more": len(groups) - len(shown),
        "are_host_actions_shown": request.GET.get("actions") == "shown",
        "key": key,
    }


def _groups(failed: QuerySet[Run], span: Span) -> dict[tuple[str, str, str], FailureGroup]:
    # The time as text: both databases compute it without calling Python for every row.
    rows = (
        failed.annotate(part=Substr(Cast("created_at", CharField()), 1, span.characters))
        .values_list("template_id", "error_code", "error_cause", "part")
        .annotate(number=Count("id"), last_at=Max(F("created_at")))
        .order_by()
    )
    groups: dict[tuple[str, str, str], FailureGroup] = {}
    for template_id, code, cause, part, number, last_at in rows:
        key = template_id, code, cause
        group = groups.setdefault(key, FailureGroup(*key))
        group.counts[part.replace("T", " ")] += number
        group.last_at = max(filter(None, (group.last_at, last_at)))
    return groups


def _add_examples(failed: QuerySet[Run], groups: dict[tuple[str, str, str], FailureGroup]) -> None:
    columns = "id", "subject", "template_id", "error_code", "error_cause", "result_summary"
    newest = failed.order_by("-created_at", "-id").only(*columns)
    for run in newest[:READ_FOR_EXAMPLES]:
        group = groups.get((run.template_id, run.error_code, run.error_cause))
        if group is not None and len(group.examples) < EXAMPLES:
            group.examples.append(run)


def _row(group: FailureGroup, span: Span, starts: list[datetime], tallest: int) -> dict[str, Any]:
    numbers = [group.counts[start.strftime(span.form)] for start in starts]
    half = len(numbers) // 2
    before, lately = sum(numbers[:half]), sum(numbers[half:])
    return {
        "group": group,
        "cause": group.cause or "–",
        "trend": _trend(before, lately),
        "bars": [
            {
                "number": number,
                "height": round(100 * number / tallest) if tallest else 0,
                "label": start.strftime("%m-%d %H:%M" if span.characters > 10 else "%m-%d"),
                "url": _list_url(group, start, start + span.part),
            }
            for start, number in zip(starts, numbers, strict=True)
        ],
        "examples": [
            {"run": run, "subject": visible(run.subject or run.template_id)}
            for run in group.examples
        ],
        "message": visible(group.examples[0].result_summary, 200) if group.examples else "",
        "url": _list_url(group, starts[0], None),
    }


def _trend(before: int, lately: int) -> str:
    """Return whether a cause became more or less frequent in the second half of the time."""
    if lately > 1.5 * before and lately - before >= 2:
        return "new" if not before else "up"
    return "down" if before > 1.5 * lately and before - lately >= 2 else "level"


def _list_url(group: FailureGroup, since: datetime, until: datetime | None) -> str:
    query = {
        "status": "failed",
        "template": group.template_id,
        "error": group.cause,
        "since": since.strftime("%Y-%m-%dT%H:%MZ"),
        **({"until": until.strftime("%Y-%m-%dT%H:%MZ")} if until else {}),
    }
    given = {name: value for name, value in query.items() if value}
    return f"{reverse('admin:runs_run_changelist')}?{urlencode(given)}"
