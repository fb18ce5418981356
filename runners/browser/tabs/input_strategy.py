"""Choose the input device: CDP first, synthetic DOM events if CDP is not available (S1 §4.6)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from runners.actions.errors import CdpLost, CdpPermissionDenied, CdpUnavailable
from runners.actions.parameters import DialogChoice
from runners.browser.input.cdp_input import CdpInput, NotDispatched
from runners.browser.input.dom_input import DomInput
from runners.browser.input.input_device import InputDevice
from runners.browser.input.interactor import Interactor
from runners.browser.session.crashes import DialogAnswer
from runners.browser.tabs.run_tab import RESERVE_SECONDS, interactor_for
from runners.browser.tabs.task_tab import TaskTab, check_frames, check_page_address
from runners.errors import NavigationTimeout
from runners.tools.base import ToolContext

Result = TypeVar("Result")
Interaction = Callable[[Interactor], Awaitable[Result]]


async def with_input_strategy(
    task: TaskTab,
    ctx: ToolContext,
    interact: Interaction[Result],
    *,
    by_cdp: bool,
    locate_ms: int,
    dialog: DialogChoice | None = None,
) -> tuple[Result, bool, list[str]]:
    """Call `interact`; return its result, whether CDP was used, and warnings.

    Args:
        dialog: answers the next question of the page; without it, the question is dismissed.

    Raises:
        CdpUnavailable: Nothing was done: CDP was not available, and synthetic input failed.
        CdpLost: The connection broke after the input began; details.effect is unknown.
        OwnPage, AddressNotAllowed: The page navigated to one that must not receive input.
        ElementNotFound, InvalidTarget, NavigationTimeout, PageCrashed: As the interactor.
    """

    def check_url(url: str) -> None:
        check_page_address(url, ctx)
        check_frames(task.tab)

    interactor_of_both = interactor_for(task.tab, ctx, timeout_ms=locate_ms, check_url=check_url)

    def interactor(device: InputDevice) -> Interactor:
        return replace(interactor_of_both, device=device)  # it keeps the elements of references

    task.tab.answer_next_dialog(DialogAnswer(dialog.accept, dialog.text) if dialog else None)
    try:
        outcome = await _interact(task, interact, interactor, by_cdp=by_cdp)
    finally:
        task.last_input_at = time.monotonic()
    await task.wait_for_windows(ctx.deadline - RESERVE_SECONDS)
    return outcome


async def _interact(
    task: TaskTab,
    interact: Interaction[Result],
    interactor: Callable[[InputDevice], Interactor],
    *,
    by_cdp: bool,
) -> tuple[Result, bool, list[str]]:
    if not by_cdp:
        return await interact(interactor(DomInput(task.tab))), False, []
    try:
        result = await interact(interactor(CdpInput(task.tab, await task.attach())))
    except (NotDispatched, CdpPermissionDenied, CdpUnavailable) as cause:
        task.detach()
        if isinstance(cause, CdpLost):
            raise
        return await _with_dom_input(interact, interactor(DomInput(task.tab)), cause)
    return result, True, []


async def _with_dom_input(
    interact: Interaction[Result], interactor: Interactor, cause: Exception
) -> tuple[Result, bool, list[str]]:
    is_denied = isinstance(cause, CdpPermissionDenied)
    code = (CdpPermissionDenied if is_denied else CdpUnavailable).code
    try:
        result = await interact(interactor)
    except NavigationTimeout as failure:
        kind = CdpLost if failure.details.get("effect") == "unknown" else CdpUnavailable
        raise kind(
            "Real input was not available, and synthetic input failed.",
            details={"effect": "none", **failure.details, "causeCode": failure.code},
        ) from None
    return result, False, [f"{code}: real input was not available; synthetic events were used."]
