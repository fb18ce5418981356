"""The definition of an MCP tool, and the loading of toolsets.

A toolset is a module under `mcp_server/toolsets/`. It defines TOOLS, a sequence of McpTool, and, if
its tools depend on the caller, CALLER_TOOLS, a CallerToolSource. To add one, add the module and put
its name into CONTINUITY_MCP_TOOLSETS or `--toolsets`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import mcp_types as types
from jsonschema_rs import Draft202012Validator

from decisions.foundation.errors import Refused, as_dict
from decisions.foundation.validation.json_schema import compile_schema
from decisions.identity.principals import Principal
from mcp_server.tools.elicitation import Elicitation

Schema = dict[str, Any]
Progress = Callable[[int, int, str], Awaitable[None]]  # finished steps, total steps, message
_TOOLSETS = Path(__file__).parent.parent / "toolsets"


@dataclass(slots=True)
class Connection:
    """What the server remembers of one client's stream (stdio, `/sse`).

    Attributes:
        session_id: the browser session of the last browser action.
        pages: by session, the URL and the lines of the page that the last answer showed.
        offered_decisions: decisions whose confirmation page the host was requested to offer.
    """

    session_id: str | None = None
    pages: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    offered_decisions: set[int | str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class McpToolCall:
    """One call of a tool, as its handler receives it.

    Attributes:
        arguments: Valid by the tool's input schema; integral numbers are ints.
        progress: Reports progress to the client, if it requested that.
        elapsed_s: Seconds between the arrival of the call and that of the handler, to be subtracted
            from a bounded wait.
        tool_names: Names of all tools that the server has for every caller.
        connection: The client's stream; None for requests to `/mcp`, which belong to no stream.
        elicitation: Requests to the person at the host.
    """

    principal: Principal
    arguments: dict[str, Any]
    progress: Progress
    elicitation: Elicitation
    elapsed_s: float = 0.0
    tool_names: tuple[str, ...] = ()
    connection: Connection | None = None


# Returns a caller's tools by name, given the names that are taken; runs on a database thread.
CallerToolSource = Callable[[Principal, Collection[str]], "dict[str, McpTool]"]
# A handler returns the structured answer, or a whole result.
Handler = Callable[[McpToolCall], Awaitable[dict[str, Any] | types.CallToolResult]]


@dataclass(frozen=True)
class McpTool:
    """A tool; its input and its output are validated against the schemas.

    Attributes:
        name: The seed's name, matching ^[A-Za-z0-9_-]{1,64}$.
        title: Empty where the name, as words, is the title.
        description: For the model: what the tool does, when to use it, what it returns.
        input_schema: Closed; its root is an object without oneOf, anyOf and allOf, which some hosts
            do not accept there.
        output_schema: Empty where the handler returns a whole result, of text alone.
        output_as_of: The tool that returns the same fields, so that tools/list names them once.
        read_only: It changes nothing.
        destructive: It may change or delete what exists; false means that it only adds.
        idempotent: It changes something, but repeating the call has no further effect.
        open_world: It acts on things outside this installation.
        needs_stack: It needs a live worker.
        is_direct_call: Its handler makes a direct call, which validates the arguments more strictly
            than `input_schema`, and audits its refusals.
        refusal_as_dict: Returns the body of a refusal, in the error shape of the tool's seed.
        meta: The `_meta` of its entry in tools/list.
        is_listed: Whether tools/list has it. A tool that it has not can still be called by name, so
            that the caller gets policy's decision.
    """

    name: str
    description: str
    input_schema: Schema
    output_schema: Schema
    handler: Handler
    title: str = ""
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    needs_stack: bool = False
    is_direct_call: bool = False
    refusal_as_dict: Callable[[Refused], dict[str, Any]] = as_dict
    meta: Mapping[str, Any] | None = None
    output_as_of: str = ""
    is_listed: bool = True

    @cached_property
    def input_validator(self) -> Draft202012Validator:
        """The compiled input schema."""
        return compile_schema(self.input_schema)

    @cached_property
    def output_validator(self) -> Draft202012Validator:
        """The compiled output schema."""
        return compile_schema(self.output_schema)


class UnknownToolset(Exception):
    """A toolset does not exist, or no toolset was named."""


def check_toolsets(names: Sequence[str]) -> None:
    """Check that each name has a module, without importing it.

    Raises:
        UnknownToolset: A name has none, or there are no names; the message lists the known ones.
    """
    known = [module.name for module in pkgutil.iter_modules([str(_TOOLSETS)])]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        problem = f"Unknown toolset: {', '.join(unknown)}." if unknown else "No toolset was named."
        raise UnknownToolset(f"{problem} Known: {', '.join(known)}.")


def load_toolsets(names: Sequence[str]) -> dict[str, McpTool]:
    """Return the tools of these toolsets by name, in the order given."""
    tools: dict[str, McpTool] = {}
    for name in dict.fromkeys(names):
        module = importlib.import_module(f"mcp_server.toolsets.{name}")
        tools |= {tool.name: tool for tool in module.TOOLS}
    return tools


def load_caller_tools(names: Sequence[str]) -> list[CallerToolSource]:
    """Return the CALLER_TOOLS of those of these toolsets that define it."""
    modules = (
        importlib.import_module(f"mcp_server.toolsets.{name}") for name in dict.fromkeys(names)
    )
    return [module.CALLER_TOOLS for module in modules if hasattr(module, "CALLER_TOOLS")]
