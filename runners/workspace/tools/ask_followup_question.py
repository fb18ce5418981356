"""The tool `ask_followup_question`: let the host show the user a question (S4 §3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from runners.tools.base import Closed, Effect, ToolContext
from runners.tools.registry import tool

REQUEST: dict[str, Any] = {
    "$id": "ask_followup_question.request",
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "properties": {"question": {"type": "string", "minLength": 1}},
    "required": ["question"],
}
RESPONSE: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"ack": {"const": True}},
    "required": ["ack"],
}


class AskFollowupQuestion(Closed):
    """The question."""

    question: str = Field(min_length=1)


@tool(
    "ask_followup_question",
    kind="workspace",
    effect=Effect.READ,
    timeout_ms=5_000,
    request=REQUEST,
    response=RESPONSE,
)
async def ask_followup_question(args: AskFollowupQuestion, ctx: ToolContext) -> Mapping[str, Any]:
    """Ask the user a question that you need answered before you can continue; the host shows it.

    Returns {ack: true} at once, not the answer: show the user the question and wait for the reply.
    """
    return {"ack": True}
