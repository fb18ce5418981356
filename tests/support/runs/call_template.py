"""Two test tools that append to a file, and a template that calls them.

Tests of policy, confirmation and call records use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from runners.errors import ToolFailed
from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView, TaskTemplate
from runs.task_templates.registry import register


class NoteArgs(Closed):
    """The text to append and the file to append it to."""

    file: str
    text: str = "x"


@tool("test_note", kind="test", effect=Effect.ONCE, timeout_ms=60_000)
async def note(args: NoteArgs, ctx: ToolContext) -> Mapping[str, Any]:
    """Append a text to a file; the text `fail` makes the tool fail."""
    if args.text == "fail":
        raise ToolFailed("failed as instructed")
    with Path(args.file).open("a") as file:
        file.write(args.text)
    return {"noted": args.text}


@tool("test_risk", kind="test", effect=Effect.ONCE, timeout_ms=60_000)
async def risk(args: NoteArgs, ctx: ToolContext) -> Mapping[str, Any]:
    """Do the same as `note`; tests add a policy rule that requires confirmation of this tool."""
    return await note.function(args, ctx)


class CallingInputs(Closed):
    """The calls of each step: `note:TEXT` or `risk:TEXT`, several separated by commas.

    `from:FILE` calls `test_risk` with the content that the file has at that time.
    """

    do: list[str] = Field(min_length=1, max_length=100)
    file: str
    effect: Effect = Effect.READ
    concurrency: int = 1
    shared: bool = False


@register
class Calling(TaskTemplate):
    """Call the tools that the inputs name."""

    template_id = "test_calling"
    name = "Calling"
    description = "Calls for tests."
    inputs_model = CallingInputs
    result_schema = {"type": "object"}
    example_inputs = ({"do": ["note:x"], "file": "/tmp/x"},)

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return one step for each instruction in `do`."""
        effect = Effect(inputs.get("effect", "read"))
        file = inputs["file"]
        return [StepPlan(what, {"what": what, "file": file}, effect) for what in inputs["do"]]

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Call the tools of the step in order."""
        file, answers = step.input["file"], []
        for what in str(step.input["what"]).split(","):
            verb, _, text = what.partition(":")
            if verb == "from":
                text = Path(text).read_text()
            tool = "test_note" if verb == "note" else "test_risk"
            answers.append(await ctx.call(tool, {"file": file, "text": text}))
        return {"answers": answers}

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Succeed if every step succeeded."""
        failed = next((step for step in steps if not step.succeeded), None)
        if failed is None:
            return Conclusion(RunStatus.SUCCEEDED, result={"done": len(steps)}, summary="all")
        error = failed.error or {"errorCode": "STEP_EXECUTION_FAILED", "message": "not reached"}
        return Conclusion(RunStatus.FAILED, error=error, summary="one failed")

    def shares_steps(self, inputs: Mapping[str, Any]) -> bool:
        """Return the input `shared`."""
        return bool(inputs.get("shared"))

    def concurrency(self, inputs: Mapping[str, Any]) -> int:
        """Return the input `concurrency`."""
        return int(inputs.get("concurrency", 1))
