"""The agent's remote tools: those that runners perform.

Which ones a run has is fixed at submit; which of these policy currently allows is read before each
turn. The run's input `tools` has `NAME@TARGET` for a tool on one runner. The model calls a remote
tool by its wire name; a tool on several runners is one tool with a parameter that chooses the
runner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import Any

from decisions.authorization.policy import Verdict
from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal, as_trust
from runners.invocation.fallback import RemoteCall
from runners.llm.base import ToolSpec
from runners.remote_tools.catalogue import OfferedTool, ToolOnRunner, list_offered
from runners.remote_tools.model_facing import (
    TARGET,
    ModelFacingTool,
    choose_runner,
    describe_tool,
    is_usable,
    model_facing_tools,
    schema_with_runner_choice,
    wire_names,
)
from runners.targets.published_tools import any_object
from runners.targets.targets import Caller
from runs.models import Run
from runs.steps import StepContext

TARGET_SEPARATOR = "@"  # between a tool's name and its runner
MAX_NAMED = 128  # remote tools in a run's input `tools`
MAX_SHOWN = 64  # in a turn; with the local tools fewer than the 128 that providers accept
SCHEMA_BYTES = 32 * 1024  # in a turn, of all remote tools' schemas together
DESCRIPTION_MAX = 400  # characters of a runner's description of a tool
REQUIRED_SCOPE = "tools:write"  # a remote tool's effect is unknown, so a read scope is not enough


class OfferedRemoteTools:
    """The tools that the caller's runners offer now.

    Args:
        taken: names that are in use; wire names differ from these.
    """

    def __init__(self, principal: Principal, *, taken: Set[str]) -> None:
        has_scope = REQUIRED_SCOPE in principal.scopes
        self._tools = list_offered(Caller.of(principal)) if has_scope else []
        self._wire_names = wire_names([tool.name for tool in self._tools], taken=taken)

    @property
    def all(self) -> list[str]:
        """`NAME@TARGET` of up to MAX_NAMED tools, those that may be called first."""
        found = [(is_usable(on), tool, on) for tool in self._tools for on in tool.targets]
        found.sort(key=lambda entry: not entry[0])
        return [_entry(tool, on) for _, tool, on in found][:MAX_NAMED]

    def named(self, name: str) -> list[str]:
        """Return `NAME@TARGET` of the tools that `name` stands for; empty if there are none.

        Args:
            name: a tool's own name or its wire name, for every runner where it may be called; or
                `NAME@TARGET`, for one.

        Raises:
            InvalidInput: Policy denies the tool on every runner that offers it.
        """
        for tool in self._tools:
            if name in (tool.name, self._wire_names[tool.name]):
                usable = [_entry(tool, on) for on in tool.targets if is_usable(on)]
                if not usable:
                    reason = "policy denies it on every runner that offers it; a rule can allow it."
                    raise InvalidInput(f"inputs.tools: {name[:64]}: {reason}")
                return usable
        entries = {_entry(tool, on) for tool in self._tools for on in tool.targets}
        return [name] if name in entries else []


def _entry(tool: OfferedTool, on: ToolOnRunner) -> str:
    return f"{tool.name}{TARGET_SEPARATOR}{on.target_id}"


async def load_remote_tools(
    names: Sequence[str], ctx: StepContext, *, taken: Set[str]
) -> dict[str, ModelFacingTool]:
    """Return the remote tools among a run's `tools` by wire name, as they are offered now.

    Tools of a runner that is gone are included but not shown to the model.
    """
    remote = [name for name in names if TARGET_SEPARATOR in name]
    if not remote:
        return {}
    return await ctx.query_run(partial(_load, names=remote, taken=taken))


def _load(run: Run, *, names: Sequence[str], taken: Set[str]) -> dict[str, ModelFacingTool]:
    target_ids: dict[str, list[str]] = {}
    for tool, _, target_id in (name.rpartition(TARGET_SEPARATOR) for name in names):
        target_ids.setdefault(tool, []).append(target_id)
    caller = Caller(run.principal_id, run.tenant_id, run.workspace_id, as_trust(run.trust))
    offered = {tool.name: tool for tool in list_offered(caller)}
    tools = [_on_targets(offered.get(name), name, ids) for name, ids in target_ids.items()]
    return model_facing_tools(tools, taken=taken, at_most=MAX_SHOWN, schema_bytes=SCHEMA_BYTES)


def _on_targets(tool: OfferedTool | None, name: str, target_ids: Sequence[str]) -> OfferedTool:
    """Return the tool with only these targets; `tool` is None if no runner offers it any more."""
    offers = {on.target_id: on for on in tool.targets} if tool is not None else {}
    targets = tuple(offers.get(target_id) or _gone(target_id) for target_id in target_ids)
    if tool is None:
        return OfferedTool(name, "", any_object(), "high", targets)
    return OfferedTool(name, tool.description, tool.input_schema, tool.risk, targets)


def _gone(target_id: str) -> ToolOnRunner:
    return ToolOnRunner(target_id, target_id, False, False, Verdict("deny", "gone"), False)


def remote_tool_specs(tools: Mapping[str, ModelFacingTool]) -> list[ToolSpec]:
    """Return the specifications, for the model, of the remote tools that are shown."""
    return [
        ToolSpec(
            wire_name,
            describe_tool(view.tool, at_most=DESCRIPTION_MAX),
            schema_with_runner_choice(view.tool),
        )
        for wire_name, view in tools.items()
        if view.is_shown
    ]


def resolve_remote_call(view: ModelFacingTool, args: Mapping[str, Any]) -> dict[str, str]:
    """Return {tool, targetId} of a call.

    For a tool that is not shown it is the first target, so that policy refuses the call.

    Raises:
        InvalidInput: The call does not choose between several runners.
    """
    tool = view.tool
    on = choose_runner(tool, dict(args)) if view.is_shown else tool.targets[0]
    return {"tool": tool.name, "targetId": on.target_id}


def runner_arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call without the one that chooses the runner."""
    return {name: value for name, value in call["args"].items() if name != TARGET}


def remote_call(tool: str, inputs: Mapping[str, Any]) -> RemoteCall:
    """Return how a call reaches its runner, and what happens if the runner is unreachable.

    It may fall back to the local tool of the same name, in the agent's workspace, if the agent may
    call that tool itself.
    """
    return RemoteCall(inputs.get("targetId"), may_fall_back=tool in inputs["tools"])
