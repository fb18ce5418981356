"""Let a page of the worker's browser judge which element a call uses, before the call is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runners.actions.judged import JudgedElement, JudgeRequest
from runners.browser.action_support.task_tab import check_page_address, task_tab
from runners.browser.errors import ContextLost
from runners.browser.interaction.locator import judgement_failure, run_command
from runners.browser.interaction.run_tab import lease_run_tab
from runners.browser.session.tab import Tab
from runners.errors import NavigationTimeout
from runners.tools.base import ToolContext

ANSWER_SECONDS = 6.0  # for the page's answer, in addition to the time in which it may search
MAX_DOCUMENTS = 8


async def judge_on_page(request: JudgeRequest, ctx: ToolContext) -> JudgedElement:
    """Return what the page says of the element that a call uses; nothing is done to the page.

    Raises:
        ToolFailed: There is no such element, or no such page; details.effect is `none`.
    """
    if request.tab_id is None:
        async with lease_run_tab(ctx) as tab:
            return await _judge(tab, request, 1.0)
    async with task_tab(ctx, request.tab_id) as task:
        judged = await _judge(task.tab, request, task.picture_scale)
    check_page_address(judged.facts.frame, ctx)
    return judged


async def _judge(tab: Tab, request: JudgeRequest, scale: float) -> JudgedElement:
    for _ in range(MAX_DOCUMENTS):
        try:
            seconds = request.locate_ms / 1000 + ANSWER_SECONDS
            answer = await run_command(tab, "judge", _question(request, scale), seconds=seconds)
        except ContextLost:
            continue
        if answer["outcome"] != "judged":
            raise judgement_failure(answer, request.locator, request.purpose, tab)
        return JudgedElement.model_validate(answer)
    raise NavigationTimeout(
        "The page keeps navigating to other documents.",
        details={"url": tab.page.url, "effect": "none"},
    )


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
