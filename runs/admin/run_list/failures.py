"""Failed runs grouped by cause or by site: how many, how that changes over time, and which runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import CharField, Count, F, Max, QuerySet
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Substr
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from decisions.admin.filters import midnight
from decisions.foundation.presentation.visible_text import visible
from runs.admin.runs.columns import template_name
from runs.models import HOST_ACTION, Run, RunStatus

GROUPS_MAX = 100
EXAMPLES = 3  # runs that a group names
SHARES = 4  # sites of a cause, or causes of a site, that a group names
READ_FOR_EXAMPLES = 400  # of the newest failures
BY_SITE = "site"
BY: Mapping[str, Any] = {"cause": _("By cause"), BY_SITE: _("By site")}


@dataclass(frozen=True, slots=True)
class Span:
    """A time that the page shows, divided into parts of equal length.

    Attributes:
        characters: of a time as text that all times of one part have in common.
        is_yesterday: it ends with the day before today, in UTC; else now.
    """

    label: Any
    part: timedelta
    parts: int
    characters: int
    form: str
    is_yesterday: bool = False

    def starts(self, now: datetime) -> list[datetime]:
        """Return the starts of the parts, the oldest first; the last part contains the end."""
        if self.is_yesterday:
            last = midnight(now) - self.part
        else:
            hour = 0 if self.part >= timedelta(days=1) else now.hour
            last = now.replace(hour=hour, minute=0, second=0, microsecond=0)
        return [last - self.part * number for number in range(self.parts - 1, -1, -1)]

    def end(self, now: datetime) -> datetime | None:
        """Return the end; None: it goes on."""
        return midnight(now) if self.is_yesterday else None


_HOURS = (timedelta(hours=1), 24, 13, "%Y-%m-%d %H")
SPANS = {
    "day": Span(_("Last 24 hours"), *_HOURS),
    "yesterday": Span(_("Yesterday (UTC)"), *_HOURS, is_yesterday=True),
    "week": Span(_("Last 7 days"), timedelta(days=1), 7, 10, "%Y-%m-%d"),
    "month": Span(_("Last 30 days"), timedelta(days=1), 30, 10, "%Y-%m-%d"),
}


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What the runs of a group have in common: a template and a cause, or a site alone."""

    template_id: str = ""
    error_code: str = ""
    error_cause: str = ""
    site: str = ""

    @property
    def cause(self) -> str:
        """The code that says most: the cause of the error, else its code."""
        return self.error_cause or self.error_code


@dataclass(slots=True)
class FailureGroup:
    """The failed runs of a group.

    Attributes:
        counts: by part of the time, as text.
        shares: how many of them failed on a site, or for a cause.
        message: of the newest run's error.
    """

    key: GroupKey
    counts: Counter[str] = field(default_factory=Counter)
    shares: Counter[str] = field(default_factory=Counter)
    last_at: datetime | None = None
    examples: list[Run] = field(default_factory=list)
    message: str = ""

    @property
    def number(self) -> int:
        """How many runs failed so."""
        return self.counts.total()


def failures_context(request: HttpRequest, runs: QuerySet[Run]) -> dict[str, Any]:
    """Return the context of the page of failures; two queries that read the failed runs of the time
    through the index run_ended_badly, and one for the messages of the examples.
    """
    time_key, by = _choice(request, "time", SPANS), _choice(request, "by", BY)
    span, now = SPANS[time_key], datetime.now(UTC)
    starts, end = span.starts(now), span.end(now)
    are_host_actions_shown = request.GET.get("actions") == "shown"
    failed = runs.filter(status=RunStatus.FAILED, created_at__gte=starts[0])
    failed = failed.filter(created_at__lt=end) if end else failed
    failed = failed if are_host_actions_shown else failed.exclude(template_id=HOST_ACTION)
    groups = _groups(failed, span, by)
    _add_examples(failed, groups, by)
    shown = sorted(groups.values(), key=lambda one: (-one.number, one.key.cause, one.key.site))
    shown = shown[:GROUPS_MAX]
    tallest = max((max(group.counts.values()) for group in shown), default=0)
    _add_messages(shown)
    query = {"time": time_key, "by": by}
    query |= {"actions": "shown"} if are_host_actions_shown else {}
    return {
        "spans": [
            (urlencode({**query, "time": name}), one.label, name == time_key)
            for name, one in SPANS.items()
        ],
        "groupings": [
            (urlencode({**query, "by": name}), label, name == by) for name, label in BY.items()
        ],
        "is_by_site": by == BY_SITE,
        "span_label": span.label,
        "total": sum(group.number for group in groups.values()),
        "groups": [_row(group, span, starts, end, tallest) for group in shown],
        "more": len(groups) - len(shown),
        "are_host_actions_shown": are_host_actions_shown,
        "with_host_actions": urlencode({"time": time_key, "by": by, "actions": "shown"}),
        "without_host_actions": urlencode({"time": time_key, "by": by}),
    }


def _choice(request: HttpRequest, name: str, choices: Mapping[str, Any]) -> str:
    value = request.GET.get(name, "")
    return value if value in choices else next(iter(choices))


def _key(by: str, template_id: str, code: str, cause: str, site: str) -> GroupKey:
    return GroupKey(site=site) if by == BY_SITE else GroupKey(template_id, code, cause)


def _groups(failed: QuerySet[Run], span: Span, by: str) -> dict[GroupKey, FailureGroup]:
    # The time as text: both databases compute it without calling Python for every row.
    rows = (
        failed.annotate(part=Substr(Cast("created_at", CharField()), 1, span.characters))
        .values_list("template_id", "error_code", "error_cause", "error_site", "part")
        .annotate(number=Count("id"), last_at=Max(F("created_at")))
        .order_by()
    )
    groups: dict[GroupKey, FailureGroup] = {}
    for template_id, code, cause, site, part, number, last_at in rows:
        key = _key(by, template_id, code, cause, site)
        group = groups.setdefault(key, FailureGroup(key))
        group.counts[part.replace("T", " ")] += number
        if share := (cause or code) if by == BY_SITE else site:
            group.shares[share] += number
        group.last_at = max(filter(None, (group.last_at, last_at)))
    return groups


def _add_examples(failed: QuerySet[Run], groups: Mapping[GroupKey, FailureGroup], by: str) -> None:
    columns = "id", "subject", "template_id", "error_code", "error_cause", "error_site"
    newest = failed.order_by("-created_at", "-id").only(*columns)
    for run in newest[:READ_FOR_EXAMPLES]:
        key = _key(by, run.template_id, run.error_code, run.error_cause, run.error_site)
        group = groups.get(key)
        if group is not None and len(group.examples) < EXAMPLES:
            group.examples.append(run)


def _add_messages(groups: list[FailureGroup]) -> None:
    newest = {group.examples[0].id: group for group in groups if group.examples}
    rows = Run.objects.filter(id__in=newest).values_list("id", KT("error__message"))
    for run_id, message in rows:
        newest[run_id].message = message or ""


def _row(
    group: FailureGroup,
    span: Span,
    starts: list[datetime],
    end: datetime | None,
    tallest: int,
) -> dict[str, Any]:
    numbers = [group.counts[start.strftime(span.form)] for start in starts]
    half = len(numbers) // 2
    before, lately = sum(numbers[:half]), sum(numbers[half:])
    return {
        "group": group,
        "cause": group.key.cause or group.key.site,
        "template": template_name(group.key.template_id) if group.key.template_id else "",
        "shares": group.shares.most_common(SHARES),
        "more_shares": max(0, len(group.shares) - SHARES),
        "trend": _trend(before, lately),
        "bars": [
            {
                "number": number,
                "height": round(100 * number / tallest) if tallest else 0,
                "label": start.strftime("%m-%d %H:%M" if span.characters > 10 else "%m-%d"),
                "url": _list_url(group.key, start, start + span.part),
            }
            for start, number in zip(starts, numbers, strict=True)
        ],
        "examples": [
            {"run": run, "subject": visible(run.subject or template_name(run.template_id))}
            for run in group.examples
        ],
        "message": visible(group.message, 300),
        "url": _list_url(group.key, starts[0], end),
    }


def _trend(before: int, lately: int) -> str:
    """Return whether a cause became more or less frequent in the second half of the time."""
    if lately > 1.5 * before and lately - before >= 2:
        return "new" if not before else "up"
    return "down" if before > 1.5 * lately and before - lately >= 2 else "level"


def _list_url(key: GroupKey, since: datetime, until: datetime | None) -> str:
    """Return the URL of the list of a group's runs; empty for those without a site."""
    if key == GroupKey():
        return ""
    query = {
        "status": "failed",
        "template": key.template_id,
        "error": key.cause,
        "site": key.site,
        "since": since.strftime("%Y-%m-%dT%H:%MZ"),
        **({"until": until.strftime("%Y-%m-%dT%H:%MZ")} if until else {}),
    }
    given = {name: value for name, value in query.items() if value}
    return f"{reverse('admin:runs_run_changelist')}?{urlencode(given)}"
