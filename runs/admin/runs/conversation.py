"""An agent's run as a conversation: its goal, the model's turns, the calls and the pages.

Only fields of the journal that the conversation shows are read, not the results of calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db.models.fields.json import KT, KeyTransform
from django.utils.translation import gettext as _

from decisions.foundation.presentation.formatting import shorten
from decisions.foundation.security.logs import redact
from runners.actions.typed_text import hide_typed_text
from runs.admin.runs.waterfall import Bar, Waterfall
from runs.agent.call_events import start_event_data
from runs.agent.journal_view import CALL, PAGE, SUMMARY, TURN
from runs.models import Run, RunStep, StepStatus

_UNSAID = frozenset({"tabId"})
_PLAIN = frozenset({"command", "goal", "path", "query", "question", "result", "url"})
BRIEF = 160  # characters of a call's arguments on one line
_LONG = 20_000  # characters of a turn's text; the step's details have the rest


def conversation(run: Run, bars: Sequence[Bar]) -> list[dict[str, Any]]:
    """Return the entries for the steps of a page of the timeline; one query. Empty for a run of
    another template.
    """
    if not any(bar.kind for bar in bars):
        return []
    rows = RunStep.objects.filter(run_id=run.id, index__in=[bar.index for bar in bars])
    read = rows.annotate(
        content=KT("output__content"),
        calls=KeyTransform("calls", "output"),
        usage=KeyTransform("usage", "output"),
        answer=KT("output__completion__answer"),
        failure=KeyTransform("error", "output"),
        page_url=KT("output__observation__url"),
        page_title=KT("output__observation__title"),
    ).values(
        *("index", "input", "content", "calls", "usage", "answer", "failure"),
        *("page_url", "page_title"),
    )
    by_index = {row["index"]: row for row in read}
    makers = {TURN: _turn, CALL: _call, PAGE: _page, SUMMARY: _summary}
    return [
        {"kind": bar.kind, "bar": bar, "number": bar.index + 1}
        | makers[bar.kind](by_index[bar.index])
        for bar in bars
        if bar.kind in makers and bar.index in by_index
    ]


def usage_figures(run: Run) -> list[dict[str, str]]:
    """Return the turns, tokens and cost of an agent's run so far as labelled figures; one query."""
    usages = [
        usage
        for usage in RunStep.objects.filter(run_id=run.id, input__kind__in=[TURN, SUMMARY])
        .annotate(usage=KeyTransform("usage", "output"))
        .values_list("usage", flat=True)
        if isinstance(usage, Mapping)
    ]
    if not usages:
        return []
    costs = [usage.get("costUsd") for usage in usages]
    known = [cost for cost in costs if cost is not None]
    cost = (
        "unknown" if not known else f"{'' if len(known) == len(costs) else '≥ '}${sum(known):.4f}"
    )
    mark = "≈ " if any(usage.get("estimated") for usage in usages) else ""
    figures = {
        "turns": str(len(usages)),
        "tokens_in": f"{mark}{_sum(usages, 'inputTokens'):,}",
        "tokens_out": f"{mark}{_sum(usages, 'outputTokens'):,}",
        "cost": cost,
    }
    if cached := _sum(usages, "cacheReadTokens"):
        figures["tokens_cached"] = f"{cached:,}"
    return [{"name": name, "value": value} for name, value in figures.items()]


def _sum(usages: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(int(usage.get(name) or 0) for usage in usages)


def _turn(row: Mapping[str, Any]) -> dict[str, Any]:
    calls = row["calls"] if isinstance(row["calls"], list) else []
    usage = row["usage"] if isinstance(row["usage"], Mapping) else {}
    return {
        "text": str(row["content"] or "")[:_LONG],
        "answer": str(row["answer"] or "")[:_LONG],
        "tokens": _tokens(usage),
        "refused": [
            {
                "tool": call.get("name", ""),
                "args": brief(hide_typed_text(call).get("args")),
                "reason": shorten(str(call["refused"]), 300),
                "code": call.get("code", ""),
            }
            for call in calls
            if isinstance(call, Mapping) and "refused" in call
        ],
    }


def _tokens(usage: Mapping[str, Any]) -> str:
    if not usage:
        return ""
    cost = usage.get("costUsd")
    counts = f"{usage.get('inputTokens', 0):,} → {usage.get('outputTokens', 0):,} tokens"
    return counts if cost is None else f"{counts} · ${cost:.4f}"


def _call(row: Mapping[str, Any]) -> dict[str, Any]:
    step = row["input"]
    failure = row["failure"] if isinstance(row["failure"], Mapping) else {}
    args = start_event_data(step)["args"]  # without typed text
    return {
        "tool": step["tool"],
        "args": brief(args),
        "code": failure.get("code", ""),
        "message": shorten(str(failure.get("message", "")), 300),
        "target": (step.get("elsewhere") or {}).get("targetId", ""),
    }


def _page(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"url": row["page_url"] or "", "title": row["page_title"] or ""}


def _summary(row: Mapping[str, Any]) -> dict[str, Any]:
    usage = row["usage"] if isinstance(row["usage"], Mapping) else {}
    return {"tokens": _tokens(usage)}


def brief(args: Any) -> str:
    """Return a call's arguments on one line, without secrets: addresses and texts as they are,
    others with their names.
    """
    given = args.items() if isinstance(args, Mapping) else ()
    parts = (_part(name, value) for name, value in given if name not in _UNSAID)
    return redact(shorten(" · ".join(part for part in parts if part), BRIEF))


def _part(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return name if value else ""
    if isinstance(value, str):
        return value if name in _PLAIN else f"{name} {value}"
    return "" if value is None else f"{name} {json.dumps(value, ensure_ascii=False)}"


def described(timeline: Waterfall, entries: Sequence[Mapping[str, Any]]) -> Waterfall:
    """Return the timeline of an agent's run with the arguments of its calls, the titles of its
    pages and the calls that were refused.
    """
    titles = {entry["bar"].index: _title(entry) for entry in entries}
    refusing = {entry["bar"].index for entry in entries if entry.get("refused")}
    tone = StepStatus.FAILED.value
    new = {
        bar.index: replace(
            bar,
            title=titles.get(bar.index) or bar.title,
            tone=tone if bar.index in refusing else bar.tone,
        )
        for bar in timeline.bars
    }
    rows = [new[row.index] if isinstance(row, Bar) else row for row in timeline.rows]
    return replace(timeline, bars=list(new.values()), rows=rows)


def _title(entry: Mapping[str, Any]) -> str:
    if entry["kind"] == CALL:
        return " · ".join(part for part in (entry["code"], entry["args"]) if part)
    if entry["kind"] == PAGE:
        return str(entry["title"] or entry["url"])
    refused = entry.get("refused") or []
    return ", ".join(f"{call['tool']} {_('refused')}" for call in refused)
