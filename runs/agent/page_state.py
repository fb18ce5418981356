"""The page that the agent works on: when it is looked at for the model, and a new tab where the one
that it had is gone (S1 §3.2, §4.5, §4.7).
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
from runs.agent.history import times_given_back, times_taken_over
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

NAVIGATING = frozenset({TASK_START.name, CLICK.name, TYPE.name})  # what may lead to another page
HELD_UP = "heldUp"  # of a call's output: a person was asked, or had the page, before it was made
HAD_PAGE = {
    "errorCode": "PERSON_HAD_PAGE",
    "message": "A person had the page before this was done, and may have changed it: it was not"
    " done. Look at the page as it is now, and decide anew.",
}
UNCHANGED = "The text is what it was when you were told of it last."


def tab_to_read(journal: Journal, turn: int) -> int | None:
    """Return the tab whose page the model has to be told of before it is asked again: its calls may
    have changed it, or a person did.
    """
    if turn in pages_of(journal):
        return None
    tab: int | None = None
    for line in calls_since(journal, turn).values():
        tool, output = line.input["tool"], line.output or {}
        if tool == TASK_STOP.name and output.get("ok"):
            tab = None
        elif tool in ACTIONS and (found := _tab_after(line, output)) is not None:
            tab = found
        elif tool not in ACTIONS and output.get(HELD_UP):
            tab = _open_tab(journal)
    return tab


def _open_tab(journal: Journal) -> int | None:
    """Return the tab that the task has now, as far as the journal knows."""
    tab: int | None = None
    for line in journal:
        output, tool = line.output or {}, line.input.get("tool")
        if tool == TASK_START.name and output.get("ok"):
            tab = int(output["result"]["tabId"])
        elif tool == TASK_STOP.name and output.get("ok"):
            tab = None
        if "newTab" in output:
            tab = int(output["newTab"]["tabId"])
    return tab


def _tab_after(line: JournalEntry, output: Mapping[str, Any]) -> int | None:
    if "newTab" in output:
        return int(output["newTab"]["tabId"])
    is_moved = line.input["tool"] in NAVIGATING and (output.get("ok") or _is_unclear(line, output))
    if not is_moved and not output.get(HELD_UP):
        return None
    tab = (output.get("result") or {}).get("tabId", line.input["args"].get("tabId"))
    return tab if isinstance(tab, int) else None


def _is_unclear(line: JournalEntry, output: Mapping[str, Any]) -> bool:
    """Tell whether nobody knows what came of a call."""
    error = output.get("error") or line.error or {}
    return not line.succeeded or (error.get("details") or {}).get("effect") == "unknown"


async def perform_action(
    step: Mapping[str, Any], journal: Journal, ctx: AgentContext
) -> tuple[ToolResult, dict[str, Any]]:
    """Do a browser action, and open one new tab where the task's is gone; return what came of it,
    and {newTab} or nothing. One is not done if a person had the page since the model was told of
    it: it was meant for the page as it was before.
    """
    told: dict[str, Any] = {HELD_UP: True} if ctx.is_resumed else {}
    was_taken_over = await ctx.query_run(times_given_back) > known_takeovers_ended(journal)
    if was_taken_over and step["tool"] != TASK_START.name:
        return ToolResult(False, error=HAD_PAGE), {HELD_UP: True}
    result = await with_retry(ctx.attempt, step["tool"], step["args"])
    if not _is_closed(result) or step["tool"] == TASK_STOP.name:
        return result, told
    opened = await _open_again(journal, ctx)
    return result, told | ({"newTab": opened.output} if opened.ok else {})


async def held_up_mark(journal: Journal, ctx: AgentContext) -> dict[str, Any]:
    """Return what a call that is none of the browser's leaves where it stopped for a person, and
    somebody had the page since the model was told of it.
    """
    if not ctx.is_resumed:
        return {}
    times = await ctx.query_run(times_taken_over)
    return {HELD_UP: True} if times > known_takeovers_ended(journal) else {}


async def look(step: Mapping[str, Any], journal: Journal, ctx: AgentContext) -> dict[str, Any]:
    """Return {ok, result: {screenshot?, readability?, missing, warnings}, newTab?} of the tab's
    page, or {ok, error}; and how often a person had given it back before.

    Raises:
        PagePrepFailed: Neither a picture nor the text could be had.
    """
    more: dict[str, Any] = {TAKEOVERS_ENDED: await ctx.query_run(times_given_back)}
    found = await prepare_page(ctx.attempt, step["tabId"])
    if _is_closed(found):
        opened = await _open_again(journal, ctx)
        if opened.ok and opened.output is not None:
            more["newTab"] = opened.output
            found = await prepare_page(ctx.attempt, opened.output["tabId"])
    if found.ok:
        return {"ok": True, "result": _news(dict(found.output or {}), journal), **more}
    error = dict(found.error or {})
    if error.get("errorCode") == PagePrepFailed.code:
        raise PagePrepFailed(str(error.get("message", "")), details=error.get("details"))
    return {"ok": False, "error": error, **more}


def _news(output: dict[str, Any], journal: Journal) -> dict[str, Any]:
    """Return what was found of a page; a text that the model was told already is left out."""
    text = orjson.dumps(output.get("readability"))
    digest = hashlib.sha256(text).hexdigest()
    seen = [
        line.output["result"].get("digest")
        for line in pages_of(journal).values()
        if line.output and "result" in line.output
    ]
    if "readability" in output and seen[-1:] == [digest]:
        del output["readability"]
        output["note"] = UNCHANGED
    return output | {"digest": digest}


async def _open_again(journal: Journal, ctx: AgentContext) -> ToolResult:
    """Give the task a new tab, on the page that was looked at last."""
    url = _last_url(journal)
    return await with_retry(ctx.attempt, TASK_START.name, {"url": url} if url else {})


def _last_url(journal: Journal) -> str | None:
    for line in reversed(journal):
        result = (line.output or {}).get("result")
        is_of_browser = line.input["kind"] == PAGE or line.input.get("tool") in ACTIONS
        if not is_of_browser or not isinstance(result, Mapping):
            continue
        for known in (result, result.get("screenshot") or {}):
            if isinstance(known, Mapping) and str(known.get("url", "")).startswith("http"):
                return str(known["url"])
    return None


def _is_closed(result: ToolResult) -> bool:
    return not result.ok and (result.error or {}).get("errorCode") == TaskTabClosed.code
