"""The toolset `browser`: the browser actions, for hosts with a model of their own.

Each answer is text alone, which every host passes to its model, once: the action's result as JSON,
then the page as it is after the action.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import Any

import mcp_types as types
import orjson

from artifacts.chunks import CHUNK_MAX, read_chunk
from decisions.foundation.infra.threads import in_thread
from decisions.foundation.validation.json_schema import schema_of
from decisions.identity.principals import Principal
from mcp_server.tools.registry import Connection, McpTool, McpToolCall, Schema
from runners.actions.catalogue import ACTIONS, OBSERVE, SCREENSHOT, TASK_START, Action
from runners.actions.errors import InvalidTaskTab
from runners.tools.base import Effect, Tool
from runners.tools.registry import list_actions
from runners.untrusted_text import fence_error, fence_page, split_result
from runs.calls.direct.browser_actions import ActionOutcome, perform_action

# Described once in the server's instructions, not with each action.
_COMMON_ARGUMENTS = frozenset({"tabId", "clickId", "xpath", "strategy", "dialog"})
_LEFT_OUT = frozenset({"description", "default"})
_DESCRIPTION_MAX = 150
_ARGUMENT_MAX = 60  # characters of the description of an argument
_SESSION: Schema = {"type": "string"}
_TARGET: Schema = {"type": "string", "description": "plugin: work in the paired browser."}
# What holds for this toolset alone.
_NOTES = {
    "task_start": (
        " Returns what the page shows, as browser_observe does, and the sessionId. The other"
        " browser tools may leave it out: then they use the last one of this connection. For whole"
        " jobs, run_task_template needs fewer calls."
    )
}
_SHORTEST = 6  # unchanged lines in a row that are left out; fewer are repeated as context
_NEW_MARK = re.compile(r"^(\[\d+\])\*")  # elements that are new since the last observation
_EVENTS = ("dialogs", "downloads", "windows", "consoleErrors")  # of an observation


def _tool(tool: Tool, action: Action) -> McpTool:
    reads = tool.effect == Effect.READ
    return McpTool(
        name=tool.name,
        description=_brief(tool.description) + _NOTES.get(tool.name, ""),
        input_schema=_input_schema(action),
        output_schema={},
        handler=partial(_call, tool.name),
        read_only=reads,
        destructive=not reads,
        open_world=True,
        needs_stack=True,
        is_direct_call=True,
    )


def _brief(description: str, at_most: int = _DESCRIPTION_MAX) -> str:
    """Return the first sentences of a description, at least one."""
    first, *rest = re.split(r"(?<=\.) ", " ".join(description.split()))
    brief = first
    for sentence in rest:
        if len(brief) + len(sentence) >= at_most:
            break
        brief += f" {sentence}"
    return brief


def _input_schema(action: Action) -> Schema:
    """Return the action's parameters and `sessionId`; the tab may be omitted."""
    schema = schema_of(action.parameters)
    fields = {
        name: _argument(field, schema.get("$defs", {}), is_common=name in _COMMON_ARGUMENTS)
        for name, field in schema.get("properties", {}).items()
    }
    required = [name for name in schema.get("required", []) if name != "tabId"]
    fields = {**fields, "sessionId": _SESSION}
    if action.name == TASK_START.name:
        fields["targetId"] = _TARGET
    return {"type": "object", "properties": fields, "required": required}


def _argument(field: Mapping[str, Any], defs: Mapping[str, Any], *, is_common: bool) -> Schema:
    listed = _plain(field, defs)
    if (description := field.get("description")) and not is_common:
        listed["description"] = _brief(description, _ARGUMENT_MAX)
    return listed


def _plain(field: Mapping[str, Any], defs: Mapping[str, Any]) -> Schema:
    """Return a schema without null, which means the same as to omit the value, without references
    and without what the default is.
    """
    kept = {key: value for key, value in field.items() if key not in _LEFT_OUT}
    alternatives = [one for one in kept.pop("anyOf", []) if one.get("type") != "null"]
    if len(alternatives) == 1:
        kept |= _plain(alternatives[0], defs)
    elif alternatives:
        kept["anyOf"] = [_plain(one, defs) for one in alternatives]
    if "$ref" in kept:
        kept |= _plain(defs[kept.pop("$ref").rpartition("/")[2]], defs)
    if "items" in kept:
        kept["items"] = _plain(kept["items"], defs)
    if "properties" in kept:
        kept["properties"] = {name: _plain(one, defs) for name, one in kept["properties"].items()}
    return kept


async def _call(name: str, call: McpToolCall) -> types.CallToolResult:
    args = dict(call.arguments)
    session_id, target_id = args.pop("sessionId", None), args.pop("targetId", None)
    connection = call.connection
    is_start = name == TASK_START.name
    goes_on = not is_start or (bool(args.get("reuseExistingTab")) and target_id is None)
    if session_id is None and goes_on and connection is not None:
        session_id = connection.session_id
    done = await perform_action(
        principal=call.principal,
        name=name,
        args=args,
        session_id=session_id,
        target_id=target_id,
    )
    if connection is not None:
        connection.session_id = done.session_id
    result = _answer(name, done, connection, is_part=bool(args.get("full") or args.get("from")))
    may_read = "artifacts:read" in call.principal.scopes
    if name == SCREENSHOT.name and done.outcome["ok"] and may_read:
        picture = await in_thread(_picture, call.principal, done.outcome["result"]["artifactId"])
        result.content.extend(picture)
    return result


def _picture(principal: Principal, artifact_id: str) -> list[types.ImageContent]:
    """Return a stored screenshot for models with vision; none if it exceeds a chunk."""
    chunk = read_chunk(principal=principal, artifact_id=artifact_id, offset=0, limit=CHUNK_MAX)
    if not chunk["complete"]:
        return []
    return [types.ImageContent(data=chunk["data"], mime_type=chunk["mimeType"])]


def _answer(
    name: str, done: ActionOutcome, connection: Connection | None, *, is_part: bool
) -> types.CallToolResult:
    """Return the result of a call.

    Args:
        is_part: it observed a part of the page, or all of it in full: then nothing is left out.
    """
    outcome = done.outcome
    is_observation = name == OBSERVE.name and outcome["ok"]
    page = outcome["result"] if is_observation else outcome.get("page")
    answer, of_page = split_result({} if is_observation else _shown(outcome))
    if not outcome["ok"]:
        answer = {**fence_error(outcome["error"]), **answer, "sessionId": done.session_id}
    if name == TASK_START.name:
        answer["sessionId"] = done.session_id
    texts = [orjson.dumps(answer).decode()] if answer else []
    if of_page:
        texts.append(fence_page("\n".join(of_page)))
    if isinstance(page, Mapping):
        lines = str(page["text"]).split("\n")
        if connection is not None and not is_part:
            url, before = connection.pages.get(done.session_id, ("", []))
            connection.pages[done.session_id] = str(page["url"]), lines
            is_known = url == page["url"] and not _is_of_another_tab(outcome)
            lines = _changed_lines(before, lines) if is_known else lines
        texts.append(page_text(page, lines))
    return types.CallToolResult(
        content=[types.TextContent(text=text) for text in texts], is_error=not outcome["ok"]
    )


def _is_of_another_tab(outcome: Mapping[str, Any]) -> bool:
    """Return whether the page of a failed action is that of a tab which the host has not seen."""
    return (outcome.get("error") or {}).get("errorCode") == InvalidTaskTab.code


def _shown(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an answer has of an action's outcome beside the page."""
    named = _named(outcome, "newTab", "artifactId", "truncated")
    result = {**(outcome.get("result") or {}), **named}
    if outcome.get("page"):
        result.pop("title", None)  # the page has it
    return result


def _named(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value[name] for name in names if name in value}


def page_text(page: Mapping[str, Any], lines: Sequence[str]) -> str:
    """Return an observation, with these lines of its text, between the lines that mark it as
    untrusted.
    """
    facts = [str(page["title"]), str(page["scroll"])]
    if page.get("status") is not None:
        facts.append(f"HTTP {page['status']}")
    lines = [" | ".join(filter(None, facts)), *lines]
    lines += [f"{name}: {json.dumps(page[name])}" for name in _EVENTS if page.get(name)]
    if (cut := page.get("cut")) is not None:
        lines.append(f"({cut['left']} more: {OBSERVE.name} with from={cut['next']})")
    return fence_page("\n".join(lines), page["url"])


def _changed_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the lines of `after`, with a note in place of each long run of lines that stand in
    `before` too.
    """
    matcher = SequenceMatcher(None, _unmarked(before), _unmarked(after), autojunk=False)
    shown: list[str] = []
    for tag, _, _, start, end in matcher.get_opcodes():
        if tag == "equal" and end - start >= _SHORTEST:
            shown.append(f"({end - start} unchanged lines)")
        else:
            shown += after[start:end]
    return shown


def _unmarked(lines: Sequence[str]) -> list[str]:
    return [_NEW_MARK.sub(r"\1", line) for line in lines]


TOOLS = tuple(_tool(tool, ACTIONS[tool.name]) for tool in list_actions())
