"""What an MCP tool is to this server, and how toolsets are found: one file each under `toolsets/`.

A toolset file defines TOOLS, a sequence of Tool; one whose tools are another list for every caller
defines CALLER_TOOLS as well. Adding one is that file, and its name in CONTINUITY_MCP_TOOLSETS or
`--toolsets`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft202012Validator

from decisions.errors import Refused, as_dict
from decisions.identity.principals import Principal
from decisions.validation.json_schema import compile_schema

Schema = dict[str, Any]
Progress = Callable[[int, int, str], Awaitable[None]]  # done steps, total steps, what is going on
_TOOLSETS = Path(__file__).parent.parent / "toolsets"


@dataclass(frozen=True, slots=True)
class McpToolCall:
    """One call of a tool, as its handler sees it.

    Attributes:
        arguments: valid by the tool's input schema; whole numbers are ints.
        progress: tells the client how far the work is; costs nothing when it did not ask.
        spent_s: seconds that went by before the handler was called, for waits that are bounded.
        offered: names of all tools that the server offers.
    """

    principal: Principal
    arguments: dict[str, Any]
    progress: Progress
    spent_s: float = 0.0
    offered: tuple[str, ...] = ()


# The tools of a caller by name, given the names that are taken; asked on a database thread.
CallerToolSource = Callable[[Principal, Collection[str]], "dict[str, McpTool]"]
Handler = Callable[[McpToolCall], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class McpTool:
    """A tool as it is listed and called; the schemas are enforced both ways.

    Attributes:
        name: the seed's, matching ^[A-Za-z0-9_-]{1,64}$.
        description: for a model: what it does, when to use it, what comes back.
        input_schema: closed; its root is an object without oneOf, anyOf, allOf (mechanisms 17).
        read_only: it changes nothing.
        destructive: it may end or alter what is there; false means that it only adds.
        idempotent: the same call again changes nothing more.
        open_world: it acts on things outside this installation.
        needs_stack: a worker has to live for it to be of use.
        checks_itself: its handler checks the arguments, against more than `input_schema` says.
        audits_refusals: a call that the gate refused, before its handler, is an audit row too.
        refusal_as_dict: a refusal in the words of the tool's own seed.
        meta: what else the list tells of it, under a name that is ours.
        is_listed: it is on the list; what is not is known by name all the same, so that policy
            answers who calls it.
    """

    name: str
    title: str
    description: str
    input_schema: Schema
    output_schema: Schema
    handler: Handler
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    needs_stack: bool = False
    validates_arguments: bool = False
    audits_refusals: bool = False
    refusal_as_dict: Callable[[Refused], dict[str, Any]] = as_dict
    meta: Mapping[str, Any] | None = None
    is_listed: bool = True

    @cached_property
    def accepts(self) -> Draft202012Validator:
        """The compiled input schema."""
        return compile_schema(self.input_schema)

    @cached_property
    def answers(self) -> Draft202012Validator:
        """The compiled output schema."""
        return compile_schema(self.output_schema)


class UnknownToolset(Exception):
    """A toolset was named that does not exist."""


def check_toolsets(names: Sequence[str]) -> None:
    """Refuse names that no file bears; loads none of them.

    Raises:
        UnknownToolset: The message names the unknown and the known ones.
    """
    known = [module.name for module in pkgutil.iter_modules([str(_TOOLSETS)])]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        told = f"Unknown toolset: {', '.join(unknown)}." if unknown else "No toolset was named."
        raise UnknownToolset(f"{told} Known: {', '.join(known)}.")


def load_toolsets(names: Sequence[str]) -> dict[str, McpTool]:
    """Return the tools of these toolsets by name, in the order given."""
    tools: dict[str, McpTool] = {}
    for name in dict.fromkeys(names):
        module = importlib.import_module(f"mcp_server.toolsets.{name}")
        tools |= {tool.name: tool for tool in module.TOOLS}
    return tools


def load_caller_tools(names: Sequence[str]) -> list[CallerToolSource]:
    """Return what lists the tools of those among these toolsets that differ from caller to
    caller.
    """
    modules = (
        importlib.import_module(f"mcp_server.toolsets.{name}") for name in dict.fromkeys(names)
    )
    return [module.CALLER_TOOLS for module in modules if hasattr(module, "CALLER_TOOLS")]
