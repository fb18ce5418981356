"""Tools of runners as language models see them, over MCP and in the agent: names and schemas that
every host and provider accepts, and the choice of a runner.

Texts of a runner are untrusted: they are limited in size here, and no decision depends on them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from decisions.foundation.errors import InvalidInput
from runners.remote_tools.catalogue import OfferedTool, ToolOnRunner

TARGET = "continuityTarget"  # our own argument of a tool; it is not sent to the runner
_NAME_MAX = 64
_MARK = re.compile(r"_[0-9a-f]{8}$")
_INVALID_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
# Hosts and model providers refuse these keywords at the root; some then refuse all tools.
_REFUSED_AT_ROOT = frozenset(
    {"oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else"}
)
_ARGUMENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # names of arguments that model providers accept

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelFacingTool:
    """A tool of runners as models see it.

    Attributes:
        tool: with the schema that is shown and the runners that policy allows; all runners if
            policy denies each of them.
        is_shown: listed. A tool that is not listed can still be called by name; policy then
            decides.
    """

    tool: OfferedTool
    is_shown: bool


def model_facing_tools(
    offered: Sequence[OfferedTool], *, taken: Collection[str], at_most: int, schema_bytes: int
) -> dict[str, ModelFacingTool]:
    """Return tools by the names that models see; `taken` are the names of local tools. Tools that
    policy allows, at once or after a confirmation, are shown: `at_most` of them, with
    `schema_bytes` of schemas in total.
    """
    names = wire_names([tool.name for tool in offered], taken=taken)
    tools, shown, left = {}, 0, schema_bytes
    for tool in offered:
        usable = tuple(on for on in tool.targets if is_usable(on))
        is_shown = bool(usable) and shown < at_most
        schema = fit_schema(tool.input_schema, at_most=left)
        if is_shown:
            shown, left = shown + 1, left - len(orjson.dumps(schema))
        fitted = replace(tool, targets=usable or tool.targets, input_schema=schema)
        tools[names[tool.name]] = ModelFacingTool(fitted, is_shown)
    return tools


def is_usable(on: ToolOnRunner) -> bool:
    """Return whether policy allows a tool on a runner, at once or after a confirmation."""
    return on.enabled and on.verdict.decision != "deny"


def wire_names(names: Iterable[str], *, taken: Iterable[str] = ()) -> dict[str, str]:
    """Return the name of each tool for models. If two tools would get the same name, both get a
    hash suffix, so they cannot be confused; so does a name that already ends like such a suffix.
    """
    plain = {name: _INVALID_IN_NAMES.sub("_", name)[:_NAME_MAX] for name in names}
    local, seen = set(taken), Counter(plain.values())
    is_free = {
        name: (name == wire or seen[wire] == 1) and not _MARK.search(wire)
        for name, wire in plain.items()
    }
    return {
        name: wire if is_free[name] and wire not in local else _marked(name)
        for name, wire in plain.items()
    }


def _marked(name: str) -> str:
    mark = "_" + hashlib.sha256(name.encode()).hexdigest()[:8]
    return _INVALID_IN_NAMES.sub("_", name)[: _NAME_MAX - len(mark)] + mark


def describe_tool(tool: OfferedTool, *, at_most: int, more: str = "") -> str:
    """Return a tool's description for models: `at_most` characters of the runner's text, the
    runners, and whether a person has to confirm the call.
    """
    where = ", ".join(_named(on) for on in tool.targets[:10])
    text = tool.description[:at_most].rstrip()
    asks = any(on.verdict.decision == "confirm" for on in tool.targets)
    parts = [
        f"{text}{'' if text[-1:] in '.!?…' else '.'}" if text else f"The tool {tool.name[:128]}.",
        f"Executed by the runner {where}.",
        "A person has to confirm it first." if asks else "",
        more,
    ]
    return " ".join(filter(None, parts))


def _named(on: ToolOnRunner) -> str:
    is_plain = on.target_name == on.target_id
    return on.target_id if is_plain else f"{on.target_name} ({on.target_id})"


def fit_schema(schema: Mapping[str, Any], *, at_most: int) -> Schema:
    """Return a runner's schema if hosts and model providers accept it, else any object."""
    shown = {name: part for name, part in schema.items() if name not in _REFUSED_AT_ROOT}
    fields = shown.get("properties", {})
    is_sound = all(_ARGUMENT.fullmatch(name) and isinstance(fields[name], dict) for name in fields)
    return shown if is_sound and len(orjson.dumps(shown)) <= at_most else {"type": "object"}


def schema_with_runner_choice(tool: OfferedTool) -> Schema:
    """Return a tool's schema, with an argument for the runner if there are several."""
    schema = dict(tool.input_schema)
    if len(tool.targets) == 1:
        return schema
    fields = schema.get("properties", {})
    choice: Schema = {
        "type": "string",
        "enum": [on.target_id for on in tool.targets],
        "description": "The runner that executes it: " + ", ".join(map(_named, tool.targets)),
    }
    required = list(schema.get("required", []))
    if not any(on.is_taken for on in tool.targets):
        required.append(TARGET)
    schema = {**schema, "properties": {**fields, TARGET: choice}}
    return {**schema, "required": required} if required else schema


def choose_runner(tool: OfferedTool, args: dict[str, Any]) -> ToolOnRunner:
    """Return the runner of a call, and remove its name from the arguments.

    Raises:
        InvalidInput: The name is unknown, or missing although required.
    """
    known: Mapping[str, ToolOnRunner] = {on.target_id: on for on in tool.targets}
    named = args.pop(TARGET, None)
    if isinstance(named, str) and named in known:
        return known[named]
    preferred = (on for on in tool.targets if on.is_taken)
    taken = tool.targets[0] if len(known) == 1 else next(preferred, None)
    if named is None and taken is not None:
        return taken
    raise InvalidInput(f"{TARGET}: name one of {', '.join(known)}.")
