"""Summarize the oldest turns of a run by the model, when the messages are about to outgrow its
context.

The summary is a step of its own: journaled, so that every later request begins the same. It stands
for the turns up to `upTo`; the system message, the task's messages, the goal and the newest turns
stay as they are. If there is no summary, old messages are shortened instead (`runs.agent.prompt`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import orjson
from django.conf import settings

from decisions.foundation.validation.storable import storable_text
from runners.llm.base import Done, Message, ToolSpec
from runners.metrics import model_turn
from runs.agent.budget import counts_of
from runs.agent.journal_view import SUMMARY, Journal, turns_of
from runs.steps import StepContext, StepPlan

KEPT_TURNS = 4  # the newest turns, which no summary stands for
MIN_TURNS = 4  # that a summary adds to the one before
FULL_SHARE = 0.8  # of the bytes that the messages may have, after which old turns are summarized
SUMMARY_MAX = 8000  # characters
REQUEST = (
    "The conversation gets too long: its older part will be replaced by your summary. Write down,"
    " as briefly as you can, what was done and what is known: facts that the goal needs with their"
    " exact values, addresses, ids and files, what failed, and what is left to do. Call no tool."
)


def summary_step(journal: Journal) -> StepPlan | None:
    """Return the step that summarizes old turns before the next turn, or None if there is room.

    A summary that failed or was empty is not requested again until MIN_TURNS later. During a
    rolling upgrade there is none: older workers do not know this step.
    """
    if settings.ROLLING_UPGRADE:
        return None
    last = turns_of(journal)[-1]
    number, context = int(last.input["turn"]), (last.output or {}).get("context")
    since = journal[journal.index(last) + 1 :]
    if context is None or any(entry.input["kind"] == SUMMARY for entry in since):
        return None
    added = sum(len(orjson.dumps(entry.output or {})) for entry in since)
    up_to = number - KEPT_TURNS
    requested = [entry.input["upTo"] for entry in journal if entry.input["kind"] == SUMMARY]
    if up_to - max(requested, default=0) < MIN_TURNS:
        return None
    if context["bytes"] + added <= context["limit"] * FULL_SHARE:
        return None
    return StepPlan("summary", {"kind": SUMMARY, "turn": number, "upTo": up_to})


async def do_summary(
    step: Mapping[str, Any], messages: list[Message], tools: list[ToolSpec], ctx: StepContext
) -> dict[str, Any]:
    """Request the summary, and return {summary, upTo, usage}.

    Args:
        messages: those of the next turn.

    Raises:
        ToolFailed: The model's server is unavailable, or its reply is invalid.
    """
    # Imported here: a process that runs no agent loads no model library.
    from runners.llm.gateway import get_gateway

    gateway = await get_gateway(settings.LLM)
    chat = gateway.stream_chat(
        messages=[*messages, Message("user", REQUEST, is_temporary=True)],
        tools=tools,
    )
    with model_turn() as record_tokens:
        async with aclosing(chat) as parts:
            (done,) = [part async for part in parts if isinstance(part, Done)]
        record_tokens(done.usage.input_tokens, done.usage.output_tokens)
    summary = storable_text(done.content).strip()[:SUMMARY_MAX]
    return {"summary": summary, "upTo": step["upTo"], "usage": counts_of(done.usage)}
