"""The tools that the model may call: local tools that the caller may use, remote tools
(`remote_tools`), and the agent's own three: ask_followup_question, attempt_completion, read_result.

The list is fixed at submit. No tool decides a confirmation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from decisions.foundation.errors import InvalidInput
from decisions.foundation.validation.json_schema import closed
from decisions.identity.principals import Principal
from runners.errors import ToolFailed
from runners.invocation.arguments import further_scopes_of, input_schema, scope_of
from runners.llm.base import ToolSpec
from runners.remote_tools.model_facing import ModelFacingTool
from runners.targets.targets import Caller
from runners.targets.workspaces import check_may_use, open_workspace
from runners.tools.base import Tool
from runners.tools.registry import list_actions, list_tools
from runs.agent.answer_check import rebase_refs
from runs.agent.remote_tools import OfferedRemoteTools, remote_tool_specs

ASK, COMPLETE, READ_RESULT = "ask_followup_question", "attempt_completion", "read_result"
AGENT_TOOLS = frozenset({ASK, COMPLETE, READ_RESULT})
SUGGESTIONS_MAX, SUGGESTION_MAX = 6, 200  # suggested answers of a question; characters of one
_specs: dict[str, ToolSpec] = {}
_ALTERNATIVES = ("oneOf", "anyOf", "allOf")  # providers refuse these at a schema's root


def resolve_workspace(principal: Principal, target_id: str | None) -> str | None:
    """Return the target id of the workspace that the agent works in, or None if the caller has
    none.

    Raises:
        InvalidInput: `target_id` is given and cannot be used.
    """
    try:
        return open_workspace(Caller.of(principal), target_id).target_id
    except ToolFailed as failed:
        if target_id is None:
            return None
        details = {"causeCode": failed.code}
        raise InvalidInput(f"inputs.targetId: {failed.message}", details=details) from None


def resolve_tools(
    principal: Principal, target_id: str | None, wanted: Sequence[str] | None
) -> list[str]:
    """Return the names of the tools that the agent may call, all or only those `wanted`; remote
    tools as `NAME@TARGET`.

    Raises:
        InvalidInput: A wanted tool does not exist or is not for this caller.
    """
    candidates = [*list_tools("workspace"), *list_actions()]
    local = [tool.name for tool in candidates if _may_use(tool, principal, target_id)]
    remote = OfferedRemoteTools(principal, taken=local_tool_names())
    if wanted is None:
        return [*local, *remote.all]
    resolved: dict[str, None] = {}
    for name in wanted:
        matches = [name] if name in local else []
        if name not in local_tool_names():  # a local tool's name never means a remote tool
            matches = remote.named(name)
        if not matches:
            message = f"inputs.tools: this agent has no tool {name[:64]}; see details.tools."
            raise InvalidInput(message, details={"tools": [*local, *remote.all]})
        resolved |= dict.fromkeys(matches)
    return list(resolved)


@cache
def local_tool_names() -> frozenset[str]:
    """Return the names of all local tools and of the agent's own, whether or not a run has them."""
    return AGENT_TOOLS.union(tool.name for tool in (*list_tools(), *list_actions()))


def _may_use(tool: Tool, principal: Principal, target_id: str | None) -> bool:
    if tool.name in AGENT_TOOLS or tool.developer:
        return False
    if not {scope_of(tool), *further_scopes_of(tool)} <= principal.scopes:
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
    names: Sequence[str],
    remote: Mapping[str, ModelFacingTool],
    output_schema: Mapping[str, Any] | None,
) -> list[ToolSpec]:
    """Return the specifications, for the model, of the named local tools, the remote tools and the
    agent's own.
    """
    local = [tool for tool in (*list_tools("workspace"), *list_actions()) if tool.name in names]
    return [*map(_spec, local), *remote_tool_specs(remote), *agent_tool_specs(output_schema)]


def _spec(tool: Tool) -> ToolSpec:
    """Return a local tool's specification; cached, because building a model's schema is slow."""
    if (spec := _specs.get(tool.name)) is None:
        spec = ToolSpec(tool.name, tool.description, _provider_schema(input_schema(tool)))
        _specs[tool.name] = spec
    return spec


def agent_tool_specs(output_schema: Mapping[str, Any] | None) -> list[ToolSpec]:
    """Return the specifications of the agent's own tools."""
    answer = {"type": "string", "minLength": 1, "description": "The answer, in words."}
    fields: dict[str, Any] = {"result": answer}
    if output_schema is not None:
        description = {"description": "The answer in the shape asked for."}
        fields["output"] = description | rebase_refs(output_schema, "#/properties/output")
    complete = ToolSpec(
        COMPLETE,
        "Say that the work is done, with its result. Call it alone, as the last call.",
        closed(fields),
    )
    read_fields = {
        "artifactId": {"type": "string"},
        "offset": {"type": "integer", "minimum": 0, "description": "In bytes; 0 is the start."},
    }
    return [
        _ask_spec(),
        ToolSpec(
            READ_RESULT,
            "Read more of a result that was too long to show, from offset on; the"
            " next offset comes with it.",
            closed(read_fields, ["artifactId"]),
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
    description = "Ask the user a question and wait for the answer. Only where nothing else helps."
    return ToolSpec(ASK, description, closed(fields, ["question"]))


def suggestions_of(args: Mapping[str, Any]) -> list[str]:
    """Return the suggested answers of a question; anything but a short text is left out."""
    given = args.get("suggestions")
    values = given if isinstance(given, list) else []
    texts = [value.strip() for value in values if isinstance(value, str)]
    short = [text for text in texts if 0 < len(text) <= SUGGESTION_MAX]
    return list(dict.fromkeys(short))[:SUGGESTIONS_MAX]


def _provider_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without the keywords that providers refuse; the call itself checks those."""
    left_out = ("$id", "$schema", *_ALTERNATIVES)
    return {name: value for name, value in schema.items() if name not in left_out}
