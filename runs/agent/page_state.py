"""The page that the agent works on: when it is read for the model, and a new tab if the task's tab
was closed (S1 §3.2, §4.5, §4.7).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from runners.actions.catalogue import ACTIONS, CLICK, TASK_START, TASK_STOP, TYPE
from runners.actions.errors import PagePrepFailed, TaskTabClosed
from runners.actions.page_preparation import prepare_page
from runners.actions.retries import with_retry
from runners.tools.base import ToolResult
from runs.agent.history import count_ended_takeovers, count_takeovers
from runs.agent.journal_view import (
    PAGE,
    TAKEOVERS_ENDED,
    AgentContext,
    Journal,
    JournalEntry,
    calls_since,
    known_takeovers_ended,
    pages_of,
)

NAVIGATING = frozenset({TASK_START.name, CLICK.name, TYPE.name})  # may lead to another page
HELD_UP = "heldUp"  # in a call's output: its step was suspended, so the page may have changed
PERSON_HAD_PAGE = {
    "errorCode": "PERSON_HAD_PAGE",
    "message": "A person had the page before this was done, and may have changed it: it was not"
    " done. Look at the page as it is now, and decide anew.",
}
UNCHANGED = "The text is the same as when you last got it."


def tab_to_read(journal: Journal, turn: int) -> int | None:
    """Return the tab to read before the next turn, because the turn's calls or a person may have
    changed its page; None if there is none.
    """
    if turn in pages_of(journal):
        return None
    tab: int | None = None
    for call in calls_since(journal, turn).values():
        tool, output = call.input["tool"], call.output or {}
        if tool == TASK_STOP.name and output.get("ok"):
            tab = None
        elif tool in ACTIONS and (changed := _tab_changed_by(call, output)) is not None:
            tab = changed
        elif tool not in ACTIONS and output.get(HELD_UP):
            tab = _open_tab(journal)
    return tab


def _open_tab(journal: Journal) -> int | None:
    """Return the task's current tab according to the journal, or None."""
    tab: int | None = None
    for entry in journal:
        output, tool = entry.output or {}, entry.input.get("tool")
        if tool == TASK_START.name and output.get("ok"):
            tab = int(output["result"]["tabId"])
        elif tool == TASK_STOP.name and output.get("ok"):
            tab = None
        if "newTab" in output:
            tab = int(output["newTab"]["tabId"])
    return tab


def _tab_changed_by(action: JournalEntry, output: Mapping[str, Any]) -> int | None:
    if "newTab" in output:
        return int(output["newTab"]["tabId"])
    may_have_navigated = action.input["tool"] in NAVIGATING and (
        output.get("ok") or _has_unknown_effect(action, output)
    )
    if not may_have_navigated and not output.get(HELD_UP):
        return None
    tab = (output.get("result") or {}).get("tabId", action.input["args"].get("tabId"))
    return tab if isinstance(tab, int) else None


def _has_unknown_effect(action: JournalEntry, output: Mapping[str, Any]) -> bool:
    error = output.get("error") or action.error or {}
    return not action.succeeded or (error.get("details") or {}).get("effect") == "unknown"


async def perform_action(
    step: Mapping[str, Any], journal: Journal, ctx: AgentContext
) -> tuple[ToolResult, dict[str, Any]]:
    """Perform a browser action, and open a new tab if the task's tab was closed.

    Returns the result, and output fields to add: `newTab`, `heldUp`. If a person took over the page
    since it was last read for the model, the action is not performed: it was chosen for the page as
    it was before.
    """
    fields: dict[str, Any] = {HELD_UP: True} if ctx.is_resumed else {}
    was_taken_over = await ctx.query_run(count_ended_takeovers) > known_takeovers_ended(journal)
    if was_taken_over and step["tool"] != TASK_START.name:
        return ToolResult(False, error=PERSON_HAD_PAGE), {HELD_UP: True}
    result = await with_retry(ctx.attempt, step["tool"], step["args"])
    if not _is_closed(result) or step["tool"] == TASK_STOP.name:
        return result, fields
    opened = await _open_new_tab(journal, ctx)
    return result, fields | ({"newTab": opened.output} if opened.ok else {})


async def held_up_mark(journal: Journal, ctx: AgentContext) -> dict[str, Any]:
    """Return {heldUp} for a call that is no browser action, if its step was suspended and a person
    took over the page since it was last read for the model; else {}.
    """
    if not ctx.is_resumed:
        return {}
    takeovers = await ctx.query_run(count_takeovers)
    return {HELD_UP: True} if takeovers > known_takeovers_ended(journal) else {}


async def read_tab(step: Mapping[str, Any], journal: Journal, ctx: AgentContext) -> dict[str, Any]:
    """Return {ok, result: {screenshot?, readability?, missing, warnings}, newTab?} or {ok, error}
    of the tab's page; both with `timesGivenBack`.

    Raises:
        PagePrepFailed: There is neither a screenshot nor a text of the page.
    """
    fields: dict[str, Any] = {TAKEOVERS_ENDED: await ctx.query_run(count_ended_takeovers)}
    page = await prepare_page(ctx.attempt, step["tabId"])
    if _is_closed(page):
        opened = await _open_new_tab(journal, ctx)
        if opened.ok and opened.output is not None:
            fields["newTab"] = opened.output
            page = await prepare_page(ctx.attempt, opened.output["tabId"])
    if page.ok:
        result = _without_unchanged_text(dict(page.output or {}), journal)
        return {"ok": True, "result": result, **fields}
    error = dict(page.error or {})
    if error.get("errorCode") == PagePrepFailed.code:
        raise PagePrepFailed(str(error.get("message", "")), details=error.get("details"))
    return {"ok": False, "error": error, **fields}


def _without_unchanged_text(output: dict[str, Any], journal: Journal) -> dict[str, Any]:
    """Return the page state with the digest of its text; the text is left out if the model has
    already got it with the last page state.
    """
    text = orjson.dumps(output.get("readability"))
    digest = hashlib.sha256(text).hexdigest()
    digests = [
        entry.output["result"].get("digest")
        for entry in pages_of(journal).values()
        if entry.output and "result" in entry.output
    ]
    if "readability" in output and digests[-1:] == [digest]:
        del output["readability"]
        output["note"] = UNCHANGED
    return output | {"digest": digest}


async def _open_new_tab(journal: Journal, ctx: AgentContext) -> ToolResult:
    """Open a new tab for the task, on the last page that the journal has."""
    url = _last_url(journal)
    return await with_retry(ctx.attempt, TASK_START.name, {"url": url} if url else {})


def _last_url(journal: Journal) -> str | None:
    for entry in reversed(journal):
        result = (entry.output or {}).get("result")
        is_of_browser = entry.input["kind"] == PAGE or entry.input.get("tool") in ACTIONS
        if not is_of_browser or not isinstance(result, Mapping):
            continue
        for source in (result, result.get("screenshot") or {}):
            if isinstance(source, Mapping) and str(source.get("url", "")).startswith("http"):
                return str(source["url"])
    return None


def _is_closed(result: ToolResult) -> bool:
    return not result.ok and (result.error or {}).get("errorCode") == TaskTabClosed.code
