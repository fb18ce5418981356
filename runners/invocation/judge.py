"""Judge which element of a page a call uses, before policy and people decide on the call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from decisions.foundation.validation.model_errors import first_error
from runners.actions.catalogue import ACTIONS
from runners.actions.judged import (
    CLICK_ELEMENT,
    FILL_FIELD,
    SUBMIT_FORM,
    JudgedElement,
    JudgeRequest,
    judge_request,
)
from runners.browser.parameters import LOCATE_MS, Locator
from runners.errors import InvalidTarget
from runners.tools.base import ToolContext

_TOOLS = frozenset({CLICK_ELEMENT, SUBMIT_FORM, FILL_FIELD})


def request_for(tool: str, args: Mapping[str, Any]) -> JudgeRequest | None:
    """Return which element a call uses; None for a tool that uses none.

    Raises:
        InvalidTarget: The arguments are not valid.
    """
    try:
        if tool in _TOOLS:
            return _of_tool(tool, args)
        if tool in ACTIONS:
            checked = ACTIONS[tool].parameters.model_validate(dict(args))
            return judge_request(tool, checked.model_dump(mode="json", by_alias=True))
    except ValidationError as error:
        raise InvalidTarget(first_error(error), details={"effect": "none"}) from None
    return None


def _of_tool(tool: str, args: Mapping[str, Any]) -> JudgeRequest:
    given = args.get("locator")
    timeout = args.get("timeoutMs")
    return JudgeRequest(
        tab_id=None,
        locator=None if given is None else Locator.model_validate(given).model_dump(),
        purpose="field" if tool == FILL_FIELD else "clickable",
        way="set" if tool == FILL_FIELD else "click",
        locate_ms=LOCATE_MS if timeout is None else int(timeout),
        will_submit=tool == SUBMIT_FORM,
    )


async def judge_element(request: JudgeRequest, ctx: ToolContext) -> JudgedElement:
    """Return what the page says of the element that a call uses; nothing is done to the page.

    Raises:
        ToolFailed: There is no such element, or no such page; details.effect is `none`.
    """
    # Imported here so that processes that use no person's browser load none of its models.
    if ctx.paired_browser is not None:
        from runners.invocation.paired_browser import judge_in_paired_browser

        return await judge_in_paired_browser(request, ctx, ctx.paired_browser)
    return await _judge_on_page(request, ctx)


async def _judge_on_page(request: JudgeRequest, ctx: ToolContext) -> JudgedElement:
    # Imported here so that processes that execute no steps load no browser.
    from runners.browser.input.judge import judge_on_tab
    from runners.browser.tabs.run_tab import lease_run_tab
    from runners.browser.tabs.task_tab import check_page_address, task_tab

    if request.tab_id is None:
        async with lease_run_tab(ctx) as tab:
            return await judge_on_tab(tab, request)
    async with task_tab(ctx, request.tab_id) as task:
        judged = await judge_on_tab(task.tab, request, task.picture_scale)
    check_page_address(judged.facts.frame, ctx)
    return judged
