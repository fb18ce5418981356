"""The tools that the agent's model sees: those of the registry that its caller may use, those of
its runners (`elsewhere`), and three of its own. None of them confirms anything, and the list is
fixed when the run is submitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from decisions.errors import InvalidInput
from decisions.identity.principals import Principal
from runners.errors import ToolFailed
from runners.invocation.arguments import input_schema, scope_of
from runners.llm.base import ToolSpec
from runners.remote_tools.model_facing import ToldTool
from runners.targets.targets import Caller
from runners.targets.workspaces import check_may_use, open_workspace
from runners.tools.base import Tool
from runners.tools.registry import list_actions, list_tools
from runs.agent.answer_check import rebase_refs
from runs.agent.remote_tools import OfferedRemoteTools, remote_tool_specs

ASK, COMPLETE, READ_RESULT = "ask_followup_question", "attempt_completion", "read_result"
AGENT_TOOLS = frozenset({ASK, COMPLETE, READ_RESULT})
SUGGESTIONS_MAX, SUGGESTION_MAX = 6, 200  # answers that a question suggests; characters of one
_specs: dict[str, ToolSpec] = {}
_ALTERNATIVES = ("oneOf", "anyOf", "allOf")  # which models' servers refuse at a schema's root


def resolve_workspace(principal: Principal, target_id: str | None) -> str | None:
    """Return the id of the workspace that the agent works in; None: the caller has none.

    Raises:
        InvalidInput: One is named that is not there.
    """
    try:
        return open_workspace(Caller.of(principal), target_id).target_id
    except ToolFailed as failed:
        if target_id is None:
            return None
        details = {"causeCode": failed.code}
        raise InvalidInput(f"inputs.targetId: {failed.message}", details=details) from None


def offered(principal: Principal, target_id: str | None, wanted: Sequence[str] | None) -> list[str]:
    """Return the names of the tools that the agent may use for this caller, or of those `wanted`;
    those of runners each with its runner.

    Raises:
        InvalidInput: One is wanted that is none of them.
    """
    known = [*list_tools("workspace"), *list_actions()]
    own = [tool.name for tool in known if _may_use(tool, principal, target_id)]
    remote = OfferedRemoteTools(principal, taken=local_tool_names())
    if wanted is None:
        return [*own, *remote.all]
    found: dict[str, None] = {}
    for name in wanted:
        meant = [name] if name in own else []
        if name not in local_tool_names():  # what is called as one of ours means ours
            meant = remote.named(name)
        if not meant:
            told = f"inputs.tools: {name[:64]} is no tool for this agent."
            raise InvalidInput(told, details={"tools": [*own, *remote.all]})
        found |= dict.fromkeys(meant)
    return list(found)


@cache
def local_tool_names() -> frozenset[str]:
    """Return the names of all tools that are ours, whether or not this agent has them."""
    return AGENT_TOOLS.union(tool.name for tool in (*list_tools(), *list_actions()))


def _may_use(tool: Tool, principal: Principal, target_id: str | None) -> bool:
    if tool.name in AGENT_TOOLS or tool.developer or scope_of(tool) not in principal.scopes:
        return False
    if tool.kind != "workspace":
        return tool.agent_only
    if target_id is None:
        return False
    try:
        workspace = open_workspace(Caller.of(principal), target_id, tool=tool.name)
        check_may_use(tool, workspace, trust=principal.trust)
    except ToolFailed:
        return False
    return True


def tool_specs(
    names: Sequence[str], remote: Mapping[str, ToldTool], output_schema: Mapping[str, Any] | None
) -> list[ToolSpec]:
    """Return what the model is told of these tools, of those of runners, and of the agent's own."""
    known = [tool for tool in (*list_tools("workspace"), *list_actions()) if tool.name in names]
    return [*map(_spec, known), *remote_tool_specs(remote), *agent_tool_specs(output_schema)]


def _spec(tool: Tool) -> ToolSpec:
    """Return what the model is told of a tool, made once: schemas of models take their time."""
    if (spec := _specs.get(tool.name)) is None:
        spec = ToolSpec(tool.name, tool.description, _plain(input_schema(tool)))
        _specs[tool.name] = spec
    return spec


def agent_tool_specs(
    output_schema: Mapping[str, Any] | None, *, last: bool = False
) -> list[ToolSpec]:
    """Return the agent's own tools; `last`: nothing is left but to complete."""
    answer = {"type": "string", "minLength": 1, "description": "The answer, in words."}
    fields: dict[str, Any] = {"result": answer}
    if output_schema is not None:
        told = {"description": "The answer in the shape asked for."}
        fields["output"] = told | rebase_refs(output_schema, "#/properties/output")
    complete = ToolSpec(
        COMPLETE,
        "Say that the work is done, with its result. Call it alone, as the last call.",
        _object(fields, list(fields)),
    )
    if last:
        return [complete]
    ids = {
        "artifactId": {"type": "string"},
        "offset": {"type": "integer", "minimum": 0, "description": "In bytes; 0 is the start."},
    }
    return [
        _ask_spec(),
        ToolSpec(
            READ_RESULT,
            "Read more of a result that was too long to show, from offset on; the"
            " next offset comes with it.",
            _object(ids, ["artifactId"]),
        ),
        complete,
    ]


def _ask_spec() -> ToolSpec:
    suggestion = {"type": "string", "minLength": 1, "maxLength": SUGGESTION_MAX}
    fields = {
        "question": {"type": "string", "minLength": 1, "maxLength": 2000},
        "suggestions": {
            "type": "array",
            "items": suggestion,
            "maxItems": SUGGESTIONS_MAX,
            "description": "Answers that the user may choose from; another one can be given.",
        },
    }
    told = "Ask the user a question and wait for the answer. Only where nothing else helps."
    return ToolSpec(ASK, told, _object(fields, ["question"]))


def suggestions_of(args: Mapping[str, Any]) -> list[str]:
    """Return the answers that a question suggests; what is no short text is left out."""
    given = args.get("suggestions")
    texts = given if isinstance(given, list) else []
    told = [one.strip() for one in texts if isinstance(one, str)]
    fitting = [one for one in told if 0 < len(one) <= SUGGESTION_MAX]
    return list(dict.fromkeys(fitting))[:SUGGESTIONS_MAX]


def _object(fields: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(fields),
        "required": required,
        "additionalProperties": False,
    }


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema as models' servers take it; what is left out is checked when it is called."""
    left_out = ("$id", "$schema", *_ALTERNATIVES)
    return {name: value for name, value in schema.items() if name not in left_out}
