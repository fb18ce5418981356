"""The registry of tools: `@tool` registers one, `get_tool` and `list_tools` look them up by name.

Each tool has a module of its own, named as the tool. Looking a tool up imports its module and no
other, so a process that only reads files does not import Playwright.
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
_RUNNERS = Path(__file__).parent.parent
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
        ValueError: The name is taken or not the name of the tool's module, or the first parameter
            is not annotated with a pydantic model.
    """

    def register(function: ToolFunction) -> Tool:
        hints = get_annotations(function, eval_str=True)
        input_model = next(iter(hints.values()), None)
        if not (isinstance(input_model, type) and issubclass(input_model, BaseModel)):
            raise ValueError(f"tool {name}: annotate the first parameter with its input model")
        if name in _tools:
            raise ValueError(f"tool {name} is registered twice")
        module = function.__module__.rpartition(".")[2]
        if module != name and _modules().get(module, ("", ""))[1] == function.__module__:
            raise ValueError(f"tool {name}: its module has to be named {name}, not {module}")
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
def _modules() -> Mapping[str, tuple[str, str]]:
    """Return the kind and the module of each tool by its name; imports no tool."""
    return {
        found.name: (kind, f"runners.{folder}.{found.name}")
        for kind, folders in _FOLDERS.items()
        for folder in folders
        for found in pkgutil.iter_modules([str(_RUNNERS / folder.replace(".", "/"))])
    }


def is_workspace_tool(name: str) -> bool:
    """Return whether a workspace tool has this name; imports no tool."""
    return _modules().get(name, ("", ""))[0] == "workspace"


def tool_names(kind: str | None = None) -> list[str]:
    """Return the names of the built-in tools and actions, all or of one kind; imports no tool."""
    return sorted(name for name, (of, _) in _modules().items() if kind in (None, of))


def get_tool(name: str) -> Tool | None:
    """Return the tool of this name, or None."""
    if name not in _tools and name in _modules():
        importlib.import_module(_modules()[name][1])
    return _tools.get(name)


def list_tools(kind: str | None = None) -> list[Tool]:
    """Return the tools that REST and MCP offer, all or of one kind, sorted by name."""
    return [tool for tool in _all(KINDS if kind is None else (kind,)) if not tool.agent_only]


def list_actions() -> list[Tool]:
    """Return the browser actions (S1 §4.2), which only the agent loop offers, sorted by name."""
    return [tool for tool in _all(("browser",)) if tool.agent_only]


def _all(kinds: Sequence[str]) -> list[Tool]:
    for kind, module in _modules().values():
        if kind in kinds:
            importlib.import_module(module)
    return [_tools[name] for name in sorted(_tools) if _tools[name].kind in kinds]
