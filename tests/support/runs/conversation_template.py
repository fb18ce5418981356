"""A template that replaces the agent's template: the message lists what the run sends and calls."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runners.errors import ToolFailed
from runners.tools.base import Closed
from runs.models import RunStatus
from runs.task_templates.base import Conclusion, StepContext, StepPlan, StepView, TaskTemplate
from runs.task_templates.registry import register

PICTURE = base64.b64decode(  # one red pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


class TalkInputs(Closed):
    """The user's message: instructions separated by `;`.

    Each is a verb and its argument: `say`, `use`, `output`, `picture`, `note FILE TEXT`,
    `until FILE`, `ask`, `fail`, `recall`. The run sends any other text back as chat content, and
    likewise the user's answer to `ask`.
    """

    goal: str
    taskId: str  # noqa: N815  (the name in the agent's template)
    targetId: str = ""  # noqa: N815


@register
class Talk(TaskTemplate):
    """Carry out the instructions of the goal, one step for each."""

    template_id = "test_talk"
    name = "Talk"
    description = "A conversation for tests."
    inputs_model = TalkInputs
    result_schema = {"type": "object"}
    example_inputs = ({"goal": "hello", "taskId": "task_x"},)

    def plan(self, inputs: Mapping[str, Any]) -> list[StepPlan]:
        """Return one step for each instruction."""
        parts = [part.strip() for part in str(inputs["goal"]).split(";")]
        return [StepPlan(part[:50] or "-", {"what": part}) for part in parts]

    async def do_step(self, step: StepPlan, ctx: StepContext) -> Mapping[str, Any]:
        """Carry out one instruction."""
        verb, _, what = str(step.input["what"]).partition(" ")
        if verb in ("use", "output", "picture"):
            await _show(ctx, verb, what)
        elif verb == "note":
            file, _, text = what.partition(" ")
            await ctx.call("test_note", {"file": file, "text": text})
        elif verb == "recall":
            self._send_words(
                ctx, ", ".join(message.content for message in await ctx.message_history())
            )
        elif verb == "ask":
            self._send_words(ctx, f"you said {ctx.ask_user(what)}")
        elif verb == "until":
            while not Path(what).exists():
                await asyncio.sleep(0.02)
        elif verb == "fail":
            raise ToolFailed("failed as instructed")
        else:
            self._send_words(ctx, what if verb == "say" else str(step.input["what"]))
        return {"message": what if verb == "say" else ""}

    def _send_words(self, ctx: StepContext, text: str) -> None:
        for word in text.split():
            ctx.emit("chatDelta", {"content": f"{word} "})
        ctx.emit("chatDelta", {"content": "", "finished": True})

    def conclude(self, inputs: Mapping[str, Any], steps: Sequence[StepView]) -> Conclusion:
        """Answer with the chat content that was sent last."""
        failed = next((step for step in steps if not step.succeeded), None)
        if failed is not None:
            error = failed.error or {"errorCode": "EXECUTION_ERROR", "message": "not reached"}
            return Conclusion(RunStatus.FAILED, error=error, summary="it failed")
        messages = [str((step.output or {}).get("message")) for step in steps]
        text = next((message for message in reversed(messages) if message), "Done.")
        return Conclusion(RunStatus.SUCCEEDED, result={"message": text}, summary="answered")


async def _show(ctx: Any, verb: str, what: str) -> None:
    if verb == "use":
        call = {"tool": what, "toolCallId": f"call-{what}"}
        ctx.emit("toolUsed", {"phase": "start", "args": {"url": "about:blank"}, **call})
        ctx.emit("toolUsed", {"phase": "end", "ok": True, **call})
    elif verb == "output":
        ctx.emit("structuredOutput", {"status": "ok", "output": {"found": what}})
    else:
        await ctx._attempt.save(PICTURE, name="page.png", mime_type="image/png", kind="screenshot")
