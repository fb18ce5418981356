"""Where tools are found: `@tool` makes one, `get_tool` and `list_tools` look them up by name.

The registry imports every module below `runners/<kind>/` the first time it is asked, never at
start-up: a door that only lists or submits does not pay for Playwright.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from inspect import get_annotations, getdoc
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from runners.base import Effect, Tool, ToolFunction

KINDS = ("browser", "workspace")
_tools: dict[str, Tool] = {}


def tool(
    name: str,
    *,
    kind: str,
    effect: Effect,
    timeout_ms: int,
    request: Mapping[str, Any] | None = None,
    response: Mapping[str, Any] | None = None,
) -> Callable[[ToolFunction], Tool]:
    """Turn a coroutine function `(args: InputModel, ctx: ToolContext)` into a registered Tool.

    The first parameter's annotation is the input model; the docstring is what callers read.
    `request` and `response` are the schemas of a tool whose seed fixes them.

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
        told = getdoc(function) or ""
        made = Tool(name, kind, effect, timeout_ms, told, input_model, function, request, response)
        _tools[name] = made
        return made

    return register


@cache
def _load() -> None:
    for kind in KINDS:
        package = importlib.import_module(f"runners.{kind}")
        for module in pkgutil.iter_modules([str(Path(package.__file__ or "").parent)]):
            importlib.import_module(f"runners.{kind}.{module.name}")


def get_tool(name: str) -> Tool | None:
    """Return the tool of this name, or None."""
    _load()
    return _tools.get(name)


def list_tools() -> list[Tool]:
    """Return every tool, by name."""
    _load()
    return [_tools[name] for name in sorted(_tools)]
