"""The registry of tools: `@tool` registers one, `get_tool` and `list_tools` look them up by name.

The registry imports the modules of a kind of tools at the first look-up of that kind, never at
start-up, and browser tools last, so a process that only reads files does not import Playwright.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from inspect import get_annotations, getdoc
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from runners.tools.base import ArgumentRepair, Effect, Tool, ToolFunction

KINDS = ("workspace", "browser")
_FOLDERS = {
    "workspace": ("workspace.tools",),
    "browser": ("browser.tools", "browser.actions"),
}
_tools: dict[str, Tool] = {}


def tool(
    name: str,
    *,
    kind: str,
    effect: Effect,
    timeout_ms: int,
    request: Mapping[str, Any] | None = None,
    response: Mapping[str, Any] | None = None,
    uses_browser: bool = False,
    repair_arguments: ArgumentRepair | None = None,
    developer: bool = False,
    agent_only: bool = False,
    opens_browser: bool = False,
) -> Callable[[ToolFunction], Tool]:
    """Turn a coroutine function `(args: InputModel, ctx: ToolContext)` into a registered Tool.

    The annotation of the first parameter is the input model; the docstring is the description that
    callers read. The other arguments are those of `Tool`.

    Raises:
        ValueError: The name is taken, or the first parameter is not annotated with a pydantic
            model.
    """

    def register(function: ToolFunction) -> Tool:
        hints = get_annotations(function, eval_str=True)
        input_model = next(iter(hints.values()), None)
        if not (isinstance(input_model, type) and issubclass(input_model, BaseModel)):
            raise ValueError(f"tool {name}: annotate the first parameter with its input model")
        if name in _tools:
            raise ValueError(f"tool {name} is registered twice")
        registered = Tool(
            name,
            kind,
            effect,
            timeout_ms,
            getdoc(function) or "",
            input_model,
            function,
            request,
            response,
            uses_browser or kind == "browser",
            repair_arguments,
            developer,
            agent_only,
            opens_browser,
        )
        _tools[name] = registered
        return registered

    return register


@cache
def _load(kind: str) -> None:
    for folder in _FOLDERS[kind]:
        package = importlib.import_module(f"runners.{folder}")
        for module in pkgutil.iter_modules([str(Path(package.__file__ or "").parent)]):
            importlib.import_module(f"runners.{folder}.{module.name}")


def is_workspace_tool(name: str) -> bool:
    """Tell whether a workspace tool has this name, without importing the browser tools."""
    _load("workspace")
    tool = _tools.get(name)
    return tool is not None and tool.kind == "workspace"


def get_tool(name: str) -> Tool | None:
    """Return the tool of this name, or None."""
    for kind in KINDS:
        _load(kind)
        if name in _tools:
            return _tools[name]
    return None


def list_tools(kind: str | None = None) -> list[Tool]:
    """Return the tools that REST and MCP offer, all or of one kind, sorted by name."""
    return [tool for tool in _all(KINDS if kind is None else (kind,)) if not tool.agent_only]


def list_actions(kind: str = "browser") -> list[Tool]:
    """Return the browser actions (S1 §4.2), which only the agent loop offers, sorted by name."""
    return [tool for tool in _all((kind,)) if tool.agent_only]


def _all(kinds: Sequence[str]) -> list[Tool]:
    for each in kinds:
        _load(each)
    return [_tools[name] for name in sorted(_tools) if _tools[name].kind in kinds]
