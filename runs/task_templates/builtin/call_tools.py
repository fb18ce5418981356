"""The template `call_tools`: call tools one after another as a durable run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, Field

from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal
from runners.invocation.fallback import RemoteCall
from runners.invocation.planned_call import StepCall
from runners.remote_tools.lookup import is_runner_named
from runners.tools.base import Closed, Effect
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView
from runs.task_templates.large_outputs import fit_output
from runs.task_templates.outcomes import OWN_CODES, failed_conclusion, failed_step, warnings_of
from runs.task_templates.registry import register
from runs.task_templates.subjects import first_words, place_of, subject_line
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
    """One tool call."""

    name: str = Field(min_length=1, max_length=128, description=_("A tool's name."))
    args: dict[str, Any] = Field(default_factory=dict, description=_("As the tool's schema says."))
    target_id: str | None = Field(
        default=None,
        alias="targetId",
        min_length=1,
        max_length=64,
        description=_("Where it is executed; by default the default target of the tool's kind."),
    )
    fallback_target_id: str | None = Field(
        default=None,
        alias="fallbackTargetId",
        min_length=1,
        max_length=64,
        description=_(
            "For a runner's tool that has the name of a local tool: the workspace in which"
            " the local tool performs the call if the runner is unreachable and its target falls"
            " back."
        ),
    )
    timeout_ms: int | None = Field(
        default=None,
        alias="timeoutMs",
        ge=1,
        le=600_000,
        description=_("The call's time limit; the tool's own limit applies if it is shorter."),
    )


class CallToolsInputs(Closed):
    """The inputs of `call_tools`: the calls in order."""

    calls: list[PlannedCall] = Field(min_length=1, max_length=100)
    stop_on_error: bool = Field(
        default=True,
        alias="stopOnError",
        description=_("Whether the first call that fails ends the run; if false, all are made."),
    )


@register
class CallTools(ToolSteps):
    """One step per call; policy authorizes each before it is made."""

    template_id = "call_tools"
    name = _("Call tools")
    description = _(
        "Call up to 100 tools one after another as a durable run: tools for the files of a"
        " workspace, for pages (read_page, open_page, click_element, …; REST's GET /api/v1/tools"
        " lists all), and of the runner that targetId names. Every call is validated before the"
        " first is made; a call that was running when its worker was lost is repeated only if its"
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
                            "description": "Of local tools an object; of a runner's any value."
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
        """Return the inputs with the target of every call that has one.

        Raises:
            InvalidInput: A tool or target does not exist or is not for this caller, or arguments
                are invalid.
            Forbidden: The caller lacks a scope that a tool needs.
        """
        calls = [
            _completed(f"inputs.calls.{index}", call, principal)
            for index, call in enumerate(inputs["calls"])
        ]
        return {**inputs, "calls": calls}

    def subject(self, inputs: Mapping[str, Any]) -> str:
        """Return the tools with the number of their calls, and what the first call is about."""
        calls = inputs["calls"]
        numbers = Counter(call["name"] for call in calls)
        shown = [f"{name} ({n})" if n > 1 else name for name, n in numbers.items()]
        names = ", ".join(shown[:3]) + (", …" if len(shown) > 3 else "")
        return subject_line(names, _object_of(calls[0]))

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return one step per call."""
        planned = []
        for index, call in enumerate(inputs["calls"], 1):
            target_id, is_remote = call.get("targetId"), _is_remote(call)
            tool = find_step_tool(
                call["name"],
                where=f"inputs.calls.{index - 1}.name",
                target_id=target_id,
                remote=is_remote,
            )
            step = tool_step(f"{index}. {tool.name}", tool, call.get("args", {}), target_id)
            more = {**_limit_of(call), **({"elsewhere": True} if is_remote else {})}
            planned.append(replace(step, input={**step.input, **more, **_fallback_of(call)}))
        return planned

    def first_call(self, step_input: Mapping[str, Any], inputs: Mapping[str, Any]) -> StepCall:
        """Return the step's only call."""
        is_remote = step_input.get("elsewhere")
        return StepCall(
            step_input["tool"],
            step_input["args"],
            step_input.get("targetId"),
            RemoteCall(step_input.get("fallbackTargetId")) if is_remote else None,
        )

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Call the step's tool; a failure that does not end the run becomes the step's output."""
        call = self.first_call(step.input, ctx.inputs)
        name, args = call.tool, call.args
        options: dict[str, Any] = {
            "target_id": call.target_id,
            "timeout_ms": step.input.get("timeoutMs"),
            "remote": call.remote,
        }
        if ctx.inputs.get("stopOnError", True):
            return await _fitted_output(name, await ctx.call(name, args, **options), ctx)
        result = await ctx.attempt(name, args, **options)
        if result.ok:
            return await _fitted_output(name, result.output, ctx)
        return {"ok": False, "error": _tool_error(result.error or {})}

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Return the result of every call, and a status by whether all, some or none succeeded."""
        failed_call = failed_step(steps)
        if failed_call is not None:
            again = all(step.effect == Effect.READ for step in steps)
            done = sum(step.succeeded for step in steps)
            return failed_conclusion(
                failed_call, template_id=self.template_id, inputs=inputs, again=again, done=done
            )
        results = [{"name": step.input["tool"], **(step.output or {"ok": False})} for step in steps]
        failed = [result for result in results if not result["ok"]]
        calls = "call" if len(results) == 1 else "calls"
        summary = f"{len(results) - len(failed)} of {len(results)} {calls} succeeded."
        warnings = _warnings(steps)
        if len(failed) == len(results):
            error = _common_error(failed)
            return Conclusion(RunStatus.FAILED, error=error, summary=summary, warnings=warnings)
        status = RunStatus.PARTIAL_SUCCESS if failed else RunStatus.SUCCEEDED
        return Conclusion(status, {"results": results}, summary=summary, warnings=warnings)


def _completed(where: str, call: Mapping[str, Any], principal: Principal) -> dict[str, Any]:
    name, target_field = call["name"], f"{where}.targetId"
    target_id = runner_target(name, call.get("targetId"), principal, where=target_field)
    remote = is_runner_named(name, target_id)
    tool = find_step_tool(name, where=f"{where}.name", target_id=target_id, remote=remote)
    args = checked_step_args(tool, call.get("args", {}), where=f"{where}.args")
    target = pinned_target(tool, target_id, principal, where=target_field)
    targets = {"targetId": target} if target else {}
    fallback_field = f"{where}.fallbackTargetId"
    if not remote and "fallbackTargetId" in call:
        reason = "only a runner's tool that has the name of a local tool can fall back; omit it."
        raise InvalidInput(f"{fallback_field}: {reason}")
    if remote:
        named = call.get("fallbackTargetId")
        targets |= fallback_target(name, target_id, named, principal, where=fallback_field)
    return {"name": tool.name, "args": args, **targets, **_limit_of(call)}


def _is_remote(call: Mapping[str, Any]) -> bool:
    return is_runner_named(call["name"], call.get("targetId"))


def _fallback_of(call: Mapping[str, Any]) -> dict[str, str]:
    named = call.get("fallbackTargetId")
    return {} if named is None else {"fallbackTargetId": named}


def _limit_of(call: Mapping[str, Any]) -> dict[str, int]:
    limit_ms = call.get("timeoutMs")
    return {} if limit_ms is None else {"timeoutMs": limit_ms}


async def _fitted_output(name: str, output: Any, ctx: StepContext) -> dict[str, Any]:
    fitted, marks = await fit_output(name, output, ctx)
    return {"ok": True, "output": fitted, **marks}


def _tool_error(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error in the shape of a ToolResult (S3 §3)."""
    fields = {
        name: error[name]
        for name in ("message", "details", "retryable", "hint", "recoverable")
        if name in error
    }
    return {"code": error["errorCode"], **fields}


def _common_error(failed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the error of a run whose calls all failed: the code that they have in common, else
    STEP_EXECUTION_FAILED.
    """
    errors = [result["error"] for result in failed]
    codes = Counter(error["code"] for error in errors)
    code = errors[0]["code"] if len(codes) == 1 else "STEP_EXECUTION_FAILED"
    details: dict[str, Any] = {"items": list(failed)}
    if code not in OWN_CODES:
        details["causeCode"], code = code, "STEP_EXECUTION_FAILED"
    return {
        "errorCode": code,
        "message": f"{_none_succeeded(failed)}: {errors[0]['message']}"[:500],
        "details": details,
        "retryable": False,
        "recovery": "Correct the calls in details.items, then submit them again.",
    }


def _none_succeeded(calls: Sequence[object]) -> str:
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


def _object_of(call: Mapping[str, Any]) -> str:
    """Return what a call is about: its page, file or folder, else its target."""
    args = call.get("args") or {}
    if isinstance(args.get("url"), str):
        return place_of(args["url"])
    if isinstance(args.get("path"), str):
        return first_words(args["path"])
    return str(call.get("targetId") or "")
