"""Let a page of the worker's browser judge which element a call uses, before the call is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.actions.judged import JudgedElement, JudgeRequest
from runners.browser.input.locator import judgement_failure
from runners.browser.session.tab import Tab
from runners.errors import ToolFailed

ANSWER_SECONDS = 6.0  # for the page's answer, in addition to the time in which it may search


async def judge_on_tab(tab: Tab, request: JudgeRequest, scale: float = 1.0) -> JudgedElement:
    """Return what the page of a tab says of the element that a call uses; nothing is done to it.

    Args:
        scale: pixels of the last picture per CSS pixel.

    Raises:
        ToolFailed: There is no such element; details.effect is `none`.
    """
    question, seconds = _question(request, scale), request.locate_ms / 1000 + ANSWER_SECONDS
    try:
        answer = await tab.run_in_documents("judge", lambda: question, lambda: seconds)
    except ToolFailed as failure:
        failure.details.setdefault("effect", "none")
        raise
    if answer["outcome"] != "judged":
        raise judgement_failure(answer, request.locator, request.purpose, tab)
    return JudgedElement.model_validate(answer)


def _question(request: JudgeRequest, scale: float) -> Mapping[str, Any]:
    point = request.point
    return {
        "locator": request.locator,
        "purpose": request.purpose,
        "way": request.way,
        "timeoutMs": request.locate_ms,
        "to": request.to,
        "point": None if point is None else {"x": point[0] / scale, "y": point[1] / scale},
        "isSubmit": request.will_submit,
    }
