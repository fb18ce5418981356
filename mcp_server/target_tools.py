"""Tools of runners as MCP has them: names that every host takes, schemas that no host refuses, and
the one direct call.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from decisions.errors import InvalidInput
from decisions.principals import Principal
from mcp_server.progress import Joined
from mcp_server.tools import Call, Schema, Tool
from runners.offered_tools import OfferedOn, OfferedTool, list_offered
from runners.targets import Caller
from runs.tools.asked import AskedCall
from runs.tools.calls import call_tool

TARGET = "continuityTarget"  # ours among the arguments of a tool: no runner is told of it
META = "continuity"  # of a listed tool: what it is called out there, and who offers it
MAX_LISTED = 128
LIST_BYTES = 128 * 1024
LIMIT_MS = 55_000  # no call of MCP blocks longer (product.md, "MCP")
_NAME_MAX = 64
_DESCRIPTION_MAX = 1000
_NOT_ON_THE_WIRE = re.compile(r"[^A-Za-z0-9_-]")
# Hosts and model providers refuse these there, some of them with every other tool.
_NOT_AT_THE_ROOT = frozenset(
    {"oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else"}
)
_ARGUMENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # what model providers let an argument be called

OUTPUT: Schema = {
    "type": "object",
    "properties": {
        "output": {"description": "What the runner's tool answered: any value."},
        "targetId": {"type": "string"},
        "callId": {"type": "string", "description": "What the audit log names the call."},
        "truncated": {
            "type": "boolean",
            "description": "The output is shortened: artifactId has the whole (get_artifact).",
        },
        "artifactId": {"type": "string"},
        "fellBackFrom": {
            "type": "string",
            "description": "The runner that was not reached; a tool of this server did it.",
        },
    },
    "required": ["output", "targetId", "callId"],
}


def tools_of_targets(principal: Principal, taken: Collection[str]) -> dict[str, Tool]:
    """Return the tools that the caller's runners offer by their names on the wire; `taken` are
    those of our own tools. Listed are those that policy lets be called, at once or once a person
    agreed: at most MAX_LISTED, with LIST_BYTES of schemas in all.
    """
    if "tools:write" not in principal.scopes:
        return {}
    offered = list_offered(Caller.of(principal))
    names = wire_names([tool.name for tool in offered], taken=taken)
    made, listed, left = {}, 0, LIST_BYTES
    for tool in offered:
        usable = tuple(on for on in tool.targets if on.enabled and on.verdict.decision != "deny")
        is_listed = bool(usable) and listed < MAX_LISTED
        schema = fit_schema(tool.input_schema, at_most=left)
        if is_listed:
            listed, left = listed + 1, left - len(orjson.dumps(schema))
        shown = replace(tool, targets=usable or tool.targets, input_schema=schema)
        made[names[tool.name]] = _tool(names[tool.name], shown, is_listed=is_listed)
    return made


def wire_names(names: Iterable[str], *, taken: Iterable[str] = ()) -> dict[str, str]:
    """Return a name on the wire for each tool (mechanisms 17): two that would be called alike both
    bear a mark, so that neither is ever taken for the other.
    """
    plain = {name: _NOT_ON_THE_WIRE.sub("_", name)[:_NAME_MAX] for name in names}
    ours, seen = set(taken), Counter(plain.values())
    is_free = {name: name == wire or seen[wire] == 1 for name, wire in plain.items()}
    return {
        name: wire if is_free[name] and wire not in ours else _marked(name)
        for name, wire in plain.items()
    }


def _marked(name: str) -> str:
    mark = "_" + hashlib.sha256(name.encode()).hexdigest()[:8]
    return _NOT_ON_THE_WIRE.sub("_", name)[: _NAME_MAX - len(mark)] + mark


def _tool(wire: str, tool: OfferedTool, *, is_listed: bool) -> Tool:
    return Tool(
        name=wire,
        title=tool.name,
        description=_described(tool),
        input_schema=_with_choice(tool),
        output_schema=OUTPUT,
        handler=partial(_call, tool),
        # Hints are for hosts that ask their user less; what a runner says of itself is no reason.
        destructive=True,
        open_world=True,
        checks_itself=True,
        audits_refusals=True,
        meta={META: {"tool": tool.name, "targets": [on.target_id for on in tool.targets]}},
        is_listed=is_listed,
    )


def _described(tool: OfferedTool) -> str:
    where = ", ".join(_named(on) for on in tool.targets[:10])
    said = tool.description[:_DESCRIPTION_MAX].rstrip()
    asks = any(on.verdict.decision == "confirm" for on in tool.targets)
    told = [
        f"{said}{'' if said[-1:] in '.!?…' else '.'}" if said else f"The tool {tool.name[:128]}.",
        f"Performed by the runner {where}.",
        "A person has to confirm it first." if asks else "",
        "It has 55 s: for longer work start call_tools with run_task_template.",
    ]
    return " ".join(filter(None, told))


def _named(on: OfferedOn) -> str:
    is_plain = on.target_name == on.target_id
    return on.target_id if is_plain else f"{on.target_name} ({on.target_id})"


def fit_schema(schema: Mapping[str, Any], *, at_most: int) -> Schema:
    """Return a runner's schema as hosts and model providers take it, or any object."""
    shown = {name: part for name, part in schema.items() if name not in _NOT_AT_THE_ROOT}
    fields = shown.get("properties", {})
    is_sound = all(_ARGUMENT.fullmatch(name) and isinstance(fields[name], dict) for name in fields)
    return shown if is_sound and len(orjson.dumps(shown)) <= at_most else {"type": "object"}


def _with_choice(tool: OfferedTool) -> Schema:
    """Return a tool's schema with the choice of a runner, where there is one."""
    schema = dict(tool.input_schema)
    if len(tool.targets) == 1:
        return schema
    fields = schema.get("properties", {})
    choice: Schema = {
        "type": "string",
        "enum": [on.target_id for on in tool.targets],
        "description": "Which runner performs it: " + ", ".join(map(_named, tool.targets)),
    }
    required = list(schema.get("required", []))
    if not any(on.is_taken for on in tool.targets):
        required.append(TARGET)
    schema = {**schema, "properties": {**fields, TARGET: choice}}
    return {**schema, "required": required} if required else schema


async def _call(tool: OfferedTool, call: Call) -> dict[str, Any]:
    args = dict(call.arguments)
    target = _chosen(tool, args)
    progress = Joined(call.progress)

    await call.progress(0, 0, f"{tool.name} on {target.target_name}")
    asked = AskedCall(
        tool.name, args, target_id=target.target_id,
        timeout_ms=max(1, LIMIT_MS - int(call.spent_s * 1000)), on_update=progress.say,
    )  # fmt: skip
    try:
        answered = await call_tool(principal=call.principal, asked=asked)
    finally:
        await progress.close()
    told = {"targetId": target.target_id, "callId": answered.call_id, **answered.marks}
    return {"output": answered.output, **told}


def _chosen(tool: OfferedTool, args: dict[str, Any]) -> OfferedOn:
    """Return the runner that a call goes to, and take its name out of the arguments."""
    if len(tool.targets) == 1:
        return tool.targets[0]
    known: Mapping[str, OfferedOn] = {on.target_id: on for on in tool.targets}
    asked = args.pop(TARGET, None)
    if isinstance(asked, str) and asked in known:
        return known[asked]
    taken = next((on for on in tool.targets if on.is_taken), None)
    if asked is None and taken is not None:
        return taken
    raise InvalidInput(f"{TARGET}: name one of {', '.join(known)}.")
