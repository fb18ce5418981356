"""Call tools, one after another, as a durable run (runs.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from decisions.errors import InvalidInput
from decisions.identity.principals import Principal
from runners.invocation.fallback import Elsewhere
from runners.invocation.step_call import StepCall
from runners.remote_tools.lookup import names_runner
from runners.tools.base import Closed, Effect
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView
from runs.task_templates.large_outputs import fit_output
from runs.task_templates.outcomes import OWN_CODES, failed_conclusion, failed_step, warnings_of
from runs.task_templates.registry import register
from runs.task_templates.tool_steps import (
    ToolSteps,
    checked_step_args,
    fallback_target,
    find_step_tool,
    pinned_target,
    runner_target,
    tool_step,
)


class PlannedCall(Closed):
    """One call."""

    name: str = Field(min_length=1, max_length=128, description="A tool's name.")
    args: dict[str, Any] = Field(default_factory=dict, description="As the tool's schema says.")
    target_id: str | None = Field(
        default=None,
        alias="targetId",
        min_length=1,
        max_length=64,
        description="Where it is executed; the default target of its kind unless said.",
    )
    fallback_target_id: str | None = Field(
        default=None,
        alias="fallbackTargetId",
        min_length=1,
        max_length=64,
        description="Of a call that a runner performs under the name of one of our own tools: the"
        " folder in which ours does it if the runner is not reached and its target falls back.",
    )
    timeout_ms: int | None = Field(
        default=None,
        alias="timeoutMs",
        ge=1,
        le=600_000,
        description="At most this long; the tool's own time unless that is shorter.",
    )


class CallToolsInputs(Closed):
    """Which tools, in order."""

    calls: list[PlannedCall] = Field(min_length=1, max_length=100)
    stop_on_error: bool = Field(
        default=True,
        alias="stopOnError",
        description="Whether the first call that fails ends the run; else all are made.",
    )


@register
class CallTools(ToolSteps):
    """A step a call; policy is asked before each."""

    template_id = "call_tools"
    name = "Call tools"
    description = (
        "Call up to 100 tools one after another as a durable run: files of a workspace, pages of"
        " a browser, tools of the runner that targetId names. Every call is checked before the"
        " first is made; one that was under way when its worker was lost is made again only if its"
        " tool may be called twice."
    )
    inputs_model: ClassVar[type[BaseModel]] = CallToolsInputs
    example_inputs = (
        {"calls": [{"name": "list_files", "args": {"path": "game/scene"}}], "stopOnError": True},
    )
    result_schema: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "ok": {"type": "boolean"},
                        "output": {
                            "description": "Of our own tools an object; of a runner's any value."
                        },
                        "truncated": {
                            "type": "boolean",
                            "description": "The output is shortened: artifactId has the whole.",
                        },
                        "artifactId": {"type": "string"},
                        "error": {
                            "type": "object",
                            "properties": {
                                "code": {"type": "string"},
                                "message": {"type": "string"},
                            },
                            "required": ["code", "message"],
                        },
                    },
                    "required": ["name", "ok"],
                },
            },
        },
        "required": ["results"],
    }
    limits = {"maxCalls": 100}

    def complete_inputs(self, inputs: Mapping[str, Any], principal: Principal) -> Mapping[str, Any]:
        """Return the inputs with the target of every call that works on one.

        Raises:
            InvalidInput: A tool, arguments or a target that are not here, or not for this caller.
            Forbidden: The caller lacks a scope that a tool needs.
        """
        calls = [
            _completed(f"inputs.calls.{index}", call, principal)
            for index, call in enumerate(inputs["calls"])
        ]
        return {**inputs, "calls": calls}

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return a step a call."""
        planned = []
        for index, call in enumerate(inputs["calls"], 1):
            target_id, is_runners = call.get("targetId"), _is_runners(call)
            tool = find_step_tool(
                call["name"],
                where=f"inputs.calls.{index - 1}.name",
                target_id=target_id,
                remote=is_runners,
            )
            step = tool_step(f"{index}. {tool.name}", tool, call.get("args", {}), target_id)
            more = {**_limit_of(call), **({"elsewhere": True} if is_runners else {})}
            planned.append(replace(step, input={**step.input, **more, **_fallback_of(call)}))
        return planned

    def first_call(self, step_input: Mapping[str, Any], inputs: Mapping[str, Any]) -> StepCall:
        """Return the step's call: it is nothing else."""
        there = step_input.get("elsewhere")
        return StepCall(
            step_input["tool"],
            step_input["args"],
            step_input.get("targetId"),
            Elsewhere(step_input.get("fallbackTargetId")) if there else None,
        )

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Call the step's tool; a failure that does not stop the run is what the step left."""
        call = self.first_call(step.input, ctx.inputs)
        name, args = call.tool, call.args
        where: dict[str, Any] = {
            "target_id": call.target_id,
            "timeout_ms": step.input.get("timeoutMs"),
            "remote": call.remote,
        }
        if ctx.inputs.get("stopOnError", True):
            return await _kept(name, await ctx.call(name, args, **where), ctx)
        result = await ctx.attempt(name, args, **where)
        if result.ok:
            return await _kept(name, result.output, ctx)
        return {"ok": False, "error": _told(result.error or {})}

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return what every call left; the status is that of its items (runs.md)."""
        broken = failed_step(steps)
        if broken is not None:
            again = all(step.effect == Effect.READ for step in steps)
            done = sum(step.succeeded for step in steps)
            return failed_conclusion(
                broken, template_id=self.template_id, inputs=inputs, again=again, done=done
            )
        results = [{"name": step.input["tool"], **(step.output or {"ok": False})} for step in steps]
        failed = [one for one in results if not one["ok"]]
        calls = "call" if len(results) == 1 else "calls"
        summary = f"{len(results) - len(failed)} of {len(results)} {calls} succeeded."
        warnings = _warnings(steps)
        if len(failed) == len(results):
            error = _common(failed)
            return Conclusion(RunStatus.FAILED, error=error, summary=summary, warnings=warnings)
        status = RunStatus.PARTIAL_SUCCESS if failed else RunStatus.SUCCEEDED
        return Conclusion(status, {"results": results}, summary=summary, warnings=warnings)


def _completed(where: str, call: Mapping[str, Any], principal: Principal) -> dict[str, Any]:
    name, at = call["name"], f"{where}.targetId"
    target_id = runner_target(name, call.get("targetId"), principal, where=at)
    remote = names_runner(name, target_id)
    tool = find_step_tool(name, where=f"{where}.name", target_id=target_id, remote=remote)
    args = checked_step_args(tool, call.get("args", {}), where=f"{where}.args")
    target = pinned_target(tool, target_id, principal, where=at)
    place = {"targetId": target} if target else {}
    if not remote and "fallbackTargetId" in call:
        told = "only a call of a runner's tool that has the name of one of ours falls back."
        raise InvalidInput(f"{where}.fallbackTargetId: {told}")
    if remote:
        at = f"{where}.fallbackTargetId"
        place |= fallback_target(name, target_id, call.get("fallbackTargetId"), principal, where=at)
    return {"name": tool.name, "args": args, **place, **_limit_of(call)}


def _is_runners(call: Mapping[str, Any]) -> bool:
    return names_runner(call["name"], call.get("targetId"))


def _fallback_of(call: Mapping[str, Any]) -> dict[str, str]:
    named = call.get("fallbackTargetId")
    return {} if named is None else {"fallbackTargetId": named}


def _limit_of(call: Mapping[str, Any]) -> dict[str, int]:
    limit_ms = call.get("timeoutMs")
    return {} if limit_ms is None else {"timeoutMs": limit_ms}


async def _kept(name: str, output: Any, ctx: StepContext) -> dict[str, Any]:
    fitting, marks = await fit_output(name, output, ctx)
    return {"ok": True, "output": fitting, **marks}


def _told(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error as a ToolResult has it (S3 §3)."""
    kept = {
        name: error[name]
        for name in ("message", "details", "retryable", "hint", "recoverable")
        if name in error
    }
    return {"code": error["errorCode"], **kept}


def _common(failed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the error of a run all of whose calls failed: their common code, else
    STEP_EXECUTION_FAILED.
    """
    errors = [one["error"] for one in failed]
    codes = Counter(error["code"] for error in errors)
    code = errors[0]["code"] if len(codes) == 1 else "STEP_EXECUTION_FAILED"
    details: dict[str, Any] = {"items": list(failed)}
    if code not in OWN_CODES:
        details["causeCode"], code = code, "STEP_EXECUTION_FAILED"
    return {
        "errorCode": code,
        "message": f"{_none_of(failed)}: {errors[0]['message']}"[:500],
        "details": details,
        "retryable": False,
        "recovery": "Mend the calls named in details.items, then submit them again.",
    }


def _none_of(calls: Sequence[object]) -> str:
    return (
        f"None of the {len(calls)} calls succeeded"
        if len(calls) > 1
        else "The call did not succeed"
    )


def _warnings(steps: Sequence[StepView]) -> list[str]:
    inner = [
        StepView(step.index, step.name, step.input, step.succeeded, output, None)
        for step in steps
        if isinstance(output := (step.output or {}).get("output"), Mapping)
    ]
    return warnings_of(inner)
