"""What a call that waits for a person requests at the host: the answer to a run's question, and the
page on which an operator confirms a call. Without support of the host, the caller gets the state.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from decisions.authorization.confirmation_links import sign_in_link
from decisions.foundation.errors import InvalidInput
from decisions.foundation.infra.threads import in_thread
from decisions.foundation.validation.storable import storable_text
from mcp_server.tools.registry import McpToolCall
from runs.operations.home.state import live_info
from runs.streaming import long_poll
from runs.submission.answer import MESSAGE_MAX, answer_run

_ANSWER_FORM = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "title": "Answer", "minLength": 1, "maxLength": MESSAGE_MAX}
    },
    "required": ["answer"],
}


async def wait_with_person(call: McpToolCall, run_id: str, wait_s: float) -> dict[str, Any]:
    """Return a run once it has ended or waits for a person; a question or a confirmation is
    requested at the host first, if it supports that.

    Raises:
        InputRequired: The client has to make the call again with the person's response.
    """
    until = time.monotonic() + wait_s
    run = await _wait(call, run_id, wait_s)
    waiting = run.get("waitingFor") or {}
    if waiting.get("type") == "answer" and await _pass_on_answer(call, run_id, waiting):
        return await _wait(call, run_id, max(0.0, until - time.monotonic()))
    if waiting.get("type") == "confirmation" and await offer_confirmation(
        call, waiting["decisionId"], waiting["question"]
    ):
        left_s = max(0.0, until - time.monotonic())
        return await _wait(call, run_id, left_s, is_person_deciding=True)
    return run


async def _wait(
    call: McpToolCall, run_id: str, wait_s: float, *, is_person_deciding: bool = False
) -> dict[str, Any]:
    return await long_poll.wait_run(
        principal=call.principal,
        run_id=run_id,
        wait_s=wait_s,
        progress=call.progress,
        stops_at_waiting=not is_person_deciding,
    )


async def _pass_on_answer(call: McpToolCall, run_id: str, waiting: Mapping[str, Any]) -> bool:
    """Request the answer to a run's question at the host; return whether there was one. It is
    recorded, unless the question was answered elsewhere meanwhile.
    """
    if "runs:write" not in call.principal.scopes:  # the answer would be refused
        return False
    question = str(waiting["question"])
    if suggestions := waiting.get("suggestions"):
        question += "\nSuggestions: " + "; ".join(suggestions)
    key = f"answer:{run_id}:{waiting['expiresAt']}"
    entered = await call.elicitation.request_form(key, question, _ANSWER_FORM)
    answer = (entered or {}).get("answer")
    if not isinstance(answer, str) or not answer.strip():
        return False
    with suppress(InvalidInput):  # the run no longer waits for this answer
        await in_thread(
            answer_run,
            principal=call.principal,
            run_id=run_id,
            answer=storable_text(answer[:MESSAGE_MAX]),
            question_expires_at=waiting["expiresAt"],
        )
    return True


async def offer_confirmation(call: McpToolCall, decision_id: int | str, question: str) -> bool:
    """Have the host offer the page of a confirmation, once for each stream; return whether the
    person agreed to open it. Only an operator who signs in there decides.

    Raises:
        InputRequired: As `wait_with_person`.
    """
    connection = call.connection
    if connection is not None and decision_id in connection.offered_decisions:
        return False
    link = await in_thread(_link, decision_id)
    if link is None:
        return False
    key = f"confirmation:{decision_id}"
    is_opened = await call.elicitation.show_url(key, question, link, str(decision_id))
    if connection is not None:
        connection.offered_decisions.add(decision_id)
    return is_opened


def _link(decision_id: int | str) -> str | None:
    stack = live_info()
    return sign_in_link(decision_id, "" if stack is None else str(stack.url))
