"""Tools that runners perform, as the agent has them: which it may call is fixed when its run is
submitted, what of that policy lets be called is looked up before each turn.

In a run's `tools` stands `NAME@TARGET` for a tool on one runner. The model calls it by its name on
the wire; two runners that offer the same are one tool with a choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import Any

from decisions.authorization.policy import Verdict
from decisions.errors import InvalidInput
from decisions.identity.principals import Principal
from runners.invocation.fallback import Elsewhere
from runners.llm.base import ToolSpec
from runners.remote_tools.catalogue import OfferedOn, OfferedTool, list_offered
from runners.remote_tools.model_facing import (
    TARGET,
    ToldTool,
    chosen,
    described,
    is_usable,
    told_tools,
    wire_names,
    with_choice,
)
from runners.targets.published_tools import any_object
from runners.targets.targets import Caller
from runners.trust import TrustLevel
from runs.agent.journal_view import AgentContext
from runs.models import Run

TARGET_SEPARATOR = "@"  # between a tool's name and its runner
MAX_NAMED = 128  # tools on runners that a run may have
MAX_SHOWN = 64  # with our own fewer than the 128 that providers take
SCHEMA_BYTES = 32 * 1024  # of a turn that all schemas have together
DESCRIPTION_MAX = 400  # characters of what a runner says of a tool
REQUIRED_SCOPE = (
    "tools:write"  # what runners' tools do is not known, so nobody has them who may only read
)


class OfferedRemoteTools:
    """What the caller's runners offer at this moment."""

    def __init__(self, principal: Principal, *, taken: Set[str]) -> None:
        has_scope = REQUIRED_SCOPE in principal.scopes
        self._tools = list_offered(Caller.of(principal)) if has_scope else []
        self._wire = wire_names([tool.name for tool in self._tools], taken=taken)

    @property
    def all(self) -> list[str]:
        """Each tool on each runner, first those that may be called."""
        found = [(is_usable(on), tool, on) for tool in self._tools for on in tool.targets]
        found.sort(key=lambda one: not one[0])
        return [_entry(tool, on) for _, tool, on in found][:MAX_NAMED]

    def named(self, name: str) -> list[str]:
        """Return the tools that are meant by a tool's own name or by that on the wire, on every
        runner where it may be called, or by `NAME@TARGET`; none where there is none.

        Raises:
            InvalidInput: Policy denies it on every runner that offers it.
        """
        for tool in self._tools:
            if name in (tool.name, self._wire[tool.name]):
                usable = [_entry(tool, on) for on in tool.targets if is_usable(on)]
                if not usable:
                    told = "policy denies it on every runner that offers it; a rule can allow it."
                    raise InvalidInput(f"inputs.tools: {name[:64]}: {told}")
                return usable
        on_one = {_entry(tool, on) for tool in self._tools for on in tool.targets}
        return [name] if name in on_one else []


def _entry(tool: OfferedTool, on: OfferedOn) -> str:
    return f"{tool.name}{TARGET_SEPARATOR}{on.target_id}"


async def load_remote_tools(
    named: Sequence[str], ctx: AgentContext, *, taken: Set[str]
) -> dict[str, ToldTool]:
    """Return the tools of a run's `tools` that runners perform by their names on the wire, as they
    are now; of a runner that is gone nothing is shown.
    """
    remote = [name for name in named if TARGET_SEPARATOR in name]
    if not remote:
        return {}
    return await ctx.query_run(partial(_look, named=remote, taken=taken))


def _look(run: Run, *, named: Sequence[str], taken: Set[str]) -> dict[str, ToldTool]:
    wanted: dict[str, list[str]] = {}
    for tool, _, target_id in (name.rpartition(TARGET_SEPARATOR) for name in named):
        wanted.setdefault(tool, []).append(target_id)
    trust: TrustLevel = "local" if run.trust == "local" else "remote"
    caller = Caller(run.principal_id, run.tenant_id, run.workspace_id, trust)
    known = {tool.name: tool for tool in list_offered(caller)}
    tools = [_on_these(known.get(name), name, ids) for name, ids in wanted.items()]
    return told_tools(tools, taken=taken, at_most=MAX_SHOWN, schema_bytes=SCHEMA_BYTES)


def _on_these(tool: OfferedTool | None, name: str, target_ids: Sequence[str]) -> OfferedTool:
    """Return a tool on the runners that a run has it on, no others."""
    there = {on.target_id: on for on in tool.targets} if tool is not None else {}
    targets = tuple(there.get(one) or _gone(one) for one in target_ids)
    if tool is None:
        return OfferedTool(name, "", any_object(), "high", targets)
    return OfferedTool(name, tool.description, tool.input_schema, tool.risk, targets)


def _gone(target_id: str) -> OfferedOn:
    return OfferedOn(target_id, target_id, False, False, Verdict("deny", "gone"), False)


def remote_tool_specs(tools: Mapping[str, ToldTool]) -> list[ToolSpec]:
    """Return what the model is told of those that are shown."""
    return [
        ToolSpec(wire, described(one.tool, at_most=DESCRIPTION_MAX), with_choice(one.tool))
        for wire, one in tools.items()
        if one.is_shown
    ]


def resolve_remote_call(told: ToldTool, args: Mapping[str, Any]) -> dict[str, str]:
    """Return which tool a call means on which runner; of one that is not shown the first, so that
    policy answers.

    Raises:
        InvalidInput: It does not say which of several.
    """
    tool = told.tool
    on = chosen(tool, dict(args)) if told.is_shown else tool.targets[0]
    return {"tool": tool.name, "targetId": on.target_id}


def runner_arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a runner is to have."""
    return {name: value for name, value in call["args"].items() if name != TARGET}


def remote_call(tool: str, inputs: Mapping[str, Any]) -> Elsewhere:
    """Return what may do a call instead whose runner is not reached: our own tool of that name, in
    the agent's folder, where the agent may call it itself.
    """
    return Elsewhere(inputs.get("targetId"), may_fall_back=tool in inputs["tools"])
