"""The page that the agent works on: when it is read for the model, and a new tab if the task's tab
was closed (S1 §3.2, §4.5, §4.7).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.actions.catalogue import ACTIONS, OBSERVE, TASK_START, TASK_STOP
from runners.actions.errors import InvalidTaskTab, PagePrepFailed, TaskTabClosed
from runners.actions.page_preparation import prepare_page
from runners.actions.retries import with_retry
from runners.tools.base import ToolResult
from runs.agent.history import count_ended_takeovers, count_takeovers
from runs.agent.journal_view import (
    PAGE,
    TAKEOVERS_ENDED,
    Journal,
    calls_since,
    known_takeovers_ended,
    pages_of,
)
from runs.agent.pages.pictures import take_picture
from runs.steps import StepContext, StepView

HELD_UP = "heldUp"  # in a call's output: its step was suspended, so the page may have changed
PERSON_HAD_PAGE = {
    "errorCode": "PERSON_HAD_PAGE",
    "message": "A person had the page before this was done, and may have changed it: it was not"
    " done. Look at the page as it is now, and decide again.",
}


def page_to_read(journal: Journal, turn: int, *, is_turn_over: bool) -> tuple[int, str] | None:
    """Return the tab to read now, and the id of the call after which it is read; None if there is
    none.

    It is read after each call that may have changed the page, before the next call of the turn; at
    the end of the turn also if a person may have changed it.
    """
    read = pages_of(journal, turn)
    found: tuple[int, str] | None = None
    for call_id, call in calls_since(journal, turn).items():
        output = call.output or {}
        if call_id in read or (call.input["tool"] == TASK_STOP.name and output.get("ok")):
            found = None
            continue
        tab = _tab_changed_by(call, output)
        if tab is None and is_turn_over and output.get(HELD_UP):
            tab = _tab_of(call, output) or _open_tab(journal)
        if tab is not None:
            found = (tab, call_id)
    return found


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


def _tab_changed_by(call: StepView, output: Mapping[str, Any]) -> int | None:
    """Return the tab whose page a call may have changed, or None."""
    if "newTab" in output:
        return int(output["newTab"]["tabId"])
    action = ACTIONS.get(call.input["tool"])
    if action is None or action is ACTIONS[TASK_STOP.name]:
        return None
    may_change = action.may_change_page(call.input["args"])
    if not may_change or not (output.get("ok") or _has_unknown_effect(call, output)):
        return None
    return _tab_of(call, output)


def _tab_of(call: StepView, output: Mapping[str, Any]) -> int | None:
    result = output.get("result")
    found = result.get("tabId") if isinstance(result, Mapping) else None
    tab = call.input["args"].get("tabId") if found is None else found
    return tab if isinstance(tab, int) and call.input["tool"] in ACTIONS else None


def _has_unknown_effect(action: StepView, output: Mapping[str, Any]) -> bool:
    error = output.get("error") or action.error or {}
    return not action.succeeded or (error.get("details") or {}).get("effect") == "unknown"


async def perform_action(
    step: Mapping[str, Any], journal: Journal, ctx: StepContext
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


async def held_up_mark(journal: Journal, ctx: StepContext) -> dict[str, Any]:
    """Return {heldUp} for a call that is no browser action, if its step was suspended and a person
    took over the page since it was last read for the model; else {}.
    """
    if not ctx.is_resumed:
        return {}
    takeovers = await ctx.query_run(count_takeovers)
    return {HELD_UP: True} if takeovers > known_takeovers_ended(journal) else {}


async def read_tab(step: Mapping[str, Any], journal: Journal, ctx: StepContext) -> dict[str, Any]:
    """Prepare the tab's page (S1 §3.2), then observe it.

    Returns {ok, observation, result: {screenshot?, readability?, missing, warnings}, newTab?} or
    {ok, error}; both with `timesGivenBack`. A tab that closed itself is replaced by the task's
    current one, in `newTab`. The text is stored if the observation is cut. Without an observation
    it is in the result, and `warnings` say so.

    Raises:
        PagePrepFailed: There is neither a screenshot nor a text of the page.
    """
    fields: dict[str, Any] = {TAKEOVERS_ENDED: await ctx.query_run(count_ended_takeovers)}
    tab_id = step["tabId"]
    page = await prepare_page(ctx.attempt, tab_id)
    if _is_closed(page):
        opened = await _open_new_tab(journal, ctx)
        if opened.ok and opened.output is not None:
            fields["newTab"], tab_id = opened.output, opened.output["tabId"]
            page = await prepare_page(ctx.attempt, tab_id)
    elif (other := _other_tab(page)) is not None:
        fields["newTab"], tab_id = {"tabId": other}, other
        page = await prepare_page(ctx.attempt, tab_id)
    if page.ok:
        return {"ok": True, **await _observe(tab_id, dict(page.output or {}), ctx), **fields}
    error = dict(page.error or {})
    if error.get("errorCode") == PagePrepFailed.code:
        raise PagePrepFailed(str(error.get("message", "")), details=error.get("details"))
    return {"ok": False, "error": error, **fields}


async def _observe(tab_id: int, prepared: dict[str, Any], ctx: StepContext) -> dict[str, Any]:
    seen = await with_retry(ctx.attempt, OBSERVE.name, {"tabId": tab_id})
    if not seen.ok or seen.output is None:
        warning = f"No observation of the page: {(seen.error or {}).get('message', '')}"
        return {"result": {**prepared, "warnings": [*prepared["warnings"], warning]}}
    text = prepared.pop("readability", None)
    if text is not None and "cut" in seen.output:
        prepared["readability"] = await _stored(text, ctx)
    picture = await take_picture(tab_id, ctx)
    return {"observation": seen.output, "result": prepared, **picture}


async def _stored(text: Mapping[str, Any], ctx: StepContext) -> dict[str, Any]:
    """Return {artifactId, contentLengthBytes} of a page's text, which is stored if it is not."""
    size = text["contentLengthBytes"]
    artifact_id = text.get("artifactId") or await ctx.store_output(text.get("markdown", ""))
    return {"artifactId": artifact_id, "contentLengthBytes": size}


async def _open_new_tab(journal: Journal, ctx: StepContext) -> ToolResult:
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


def _other_tab(result: ToolResult) -> int | None:
    """Return the task's current tab, if an action failed because its own tab closed itself."""
    error = result.error or {}
    if error.get("errorCode") != InvalidTaskTab.code:
        return None
    other = error.get("details", {}).get("taskTabId")
    return other if isinstance(other, int) else None


def _is_closed(result: ToolResult) -> bool:
    return not result.ok and (result.error or {}).get("errorCode") == TaskTabClosed.code
