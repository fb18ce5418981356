"""The tool `ask_followup_question`: let the host show the user a question (S4 §3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool
from runners.workspace.host_tools import ACKNOWLEDGEMENT, text_request


class AskFollowupQuestion(Closed):
    """The question."""

    question: str = Field(min_length=1)


@tool(
    "ask_followup_question",
    kind="workspace",
    effect=Effect.READ,
    timeout_ms=5_000,
    request=text_request("ask_followup_question", "question"),
    response=ACKNOWLEDGEMENT,
)
async def ask_followup_question(args: AskFollowupQuestion, ctx: ToolContext) -> Mapping[str, Any]:
    """Ask the user a question that you need answered before you can continue; the host shows it.

    Returns {ack: true} at once, not the answer: show the user the question and wait for the reply.
    """
    return {"ack": True}
