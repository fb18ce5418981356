"""Tools of runners as models are told of them, by every door and by the agent: names that every
host and provider takes, schemas that none refuses, and which runner a call goes to.

What a runner says of itself is a stranger's word: it is bounded here, and nothing is decided by it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from decisions.errors import InvalidInput
from runners.remote_tools.catalogue import OfferedOn, OfferedTool

TARGET = "continuityTarget"  # ours among the arguments of a tool: no runner is told of it
_NAME_MAX = 64
_MARK = re.compile(r"_[0-9a-f]{8}$")
_NOT_ON_THE_WIRE = re.compile(r"[^A-Za-z0-9_-]")
# Hosts and model providers refuse these there, some of them with every other tool.
_NOT_AT_THE_ROOT = frozenset(
    {"oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else"}
)
_ARGUMENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")  # what model providers let an argument be called

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToldTool:
    """A tool of runners under its name on the wire.

    Attributes:
        tool: with the schema that is shown, and the runners that may be called; all of them where
            policy denies every one.
        is_shown: it is on the list; what is not is known by name all the same, so that policy
            answers who calls it.
    """

    tool: OfferedTool
    is_shown: bool


def told_tools(
    offered: Sequence[OfferedTool], *, taken: Collection[str], at_most: int, schema_bytes: int
) -> dict[str, ToldTool]:
    """Return tools by their names on the wire; `taken` are those of our own tools. Shown are those
    that policy lets be called, at once or once a person agreed: `at_most`, with `schema_bytes` of
    schemas in all.
    """
    names = wire_names([tool.name for tool in offered], taken=taken)
    told, shown, left = {}, 0, schema_bytes
    for tool in offered:
        usable = tuple(on for on in tool.targets if is_usable(on))
        is_shown = bool(usable) and shown < at_most
        schema = fit_schema(tool.input_schema, at_most=left)
        if is_shown:
            shown, left = shown + 1, left - len(orjson.dumps(schema))
        fitted = replace(tool, targets=usable or tool.targets, input_schema=schema)
        told[names[tool.name]] = ToldTool(fitted, is_shown)
    return told


def is_usable(on: OfferedOn) -> bool:
    """Tell whether policy lets a tool be called on a runner, at once or once a person agreed."""
    return on.enabled and on.verdict.decision != "deny"


def wire_names(names: Iterable[str], *, taken: Iterable[str] = ()) -> dict[str, str]:
    """Return a name on the wire for each tool (mechanisms 17): two that would be called alike both
    bear a mark, so that neither is ever taken for the other; so does one that ends as if it bore
    another's.
    """
    plain = {name: _NOT_ON_THE_WIRE.sub("_", name)[:_NAME_MAX] for name in names}
    ours, seen = set(taken), Counter(plain.values())
    is_free = {
        name: (name == wire or seen[wire] == 1) and not _MARK.search(wire)
        for name, wire in plain.items()
    }
    return {
        name: wire if is_free[name] and wire not in ours else _marked(name)
        for name, wire in plain.items()
    }


def _marked(name: str) -> str:
    mark = "_" + hashlib.sha256(name.encode()).hexdigest()[:8]
    return _NOT_ON_THE_WIRE.sub("_", name)[: _NAME_MAX - len(mark)] + mark


def described(tool: OfferedTool, *, at_most: int, more: str = "") -> str:
    """Return what a model is told of a tool: `at_most` characters of its runner's words, who
    performs it, and whether a person is asked.
    """
    where = ", ".join(_named(on) for on in tool.targets[:10])
    said = tool.description[:at_most].rstrip()
    asks = any(on.verdict.decision == "confirm" for on in tool.targets)
    told = [
        f"{said}{'' if said[-1:] in '.!?…' else '.'}" if said else f"The tool {tool.name[:128]}.",
        f"Performed by the runner {where}.",
        "A person has to confirm it first." if asks else "",
        more,
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


def with_choice(tool: OfferedTool) -> Schema:
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


def chosen(tool: OfferedTool, args: dict[str, Any]) -> OfferedOn:
    """Return the runner that a call goes to, and take its name out of the arguments.

    Raises:
        InvalidInput: It names none of them, or none where it has to.
    """
    known: Mapping[str, OfferedOn] = {on.target_id: on for on in tool.targets}
    asked = args.pop(TARGET, None)
    if isinstance(asked, str) and asked in known:
        return known[asked]
    preferred = (on for on in tool.targets if on.is_taken)
    taken = tool.targets[0] if len(known) == 1 else next(preferred, None)
    if asked is None and taken is not None:
        return taken
    raise InvalidInput(f"{TARGET}: name one of {', '.join(known)}.")
