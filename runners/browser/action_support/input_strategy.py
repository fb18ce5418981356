"""Input by the browser's protocol first, by a script in the page where that is not to be had (S1
§4.6).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from runners.actions.errors import CdpLost, CdpPermissionDenied, CdpUnavailable
from runners.browser.action_support.cdp_input import CdpInput, NotDispatched
from runners.browser.action_support.dom_input import DomInput
from runners.browser.action_support.task_tab import TaskTab, check_frames, check_page_address
from runners.browser.interaction.input_device import InputDevice
from runners.browser.interaction.interactor import Interactor
from runners.browser.interaction.run_tab import interactor_for
from runners.errors import NavigationTimeout
from runners.tools.base import ToolContext

Answer = TypeVar("Answer")
AuditEvent = Callable[[Interactor], Awaitable[Answer]]


async def with_input_strategy(
    task: TaskTab, ctx: ToolContext, deed: AuditEvent[Answer], *, by_cdp: bool, looking_ms: int
) -> tuple[Answer, bool, list[str]]:
    """Do something by hand; return its answer, whether it was done by the protocol, and warnings.

    Raises:
        CdpUnavailable: Not done: by the protocol it could not be, and what stands in for it failed.
        CdpLost: The line was lost after the input began; details.effect is unknown.
        OwnPage, AddressNotAllowed: The page went on to one where nothing may be touched.
        ElementNotFound, InvalidTarget, NavigationTimeout, PageCrashed: as the hand.
    """

    def check_url(url: str) -> None:
        check_page_address(url, ctx)
        check_frames(task.tab)

    def hand(device: InputDevice) -> Interactor:
        return interactor_for(
            task.tab, ctx, timeout_ms=looking_ms, device=device, check_url=check_url
        )

    try:
        if not by_cdp:
            return await deed(hand(DomInput(task.tab))), False, []
        try:
            answer = await deed(hand(CdpInput(task.tab, await task.attached())))
        except (NotDispatched, CdpPermissionDenied, CdpUnavailable) as why:
            task.detach()
            if isinstance(why, CdpLost):
                raise
            return await _instead(deed, hand(DomInput(task.tab)), why)
        return answer, True, []
    finally:
        task.touched_at = time.monotonic()


async def _instead(
    deed: AuditEvent[Answer], hand: Interactor, why: Exception
) -> tuple[Answer, bool, list[str]]:
    code = (CdpPermissionDenied if isinstance(why, CdpPermissionDenied) else CdpUnavailable).code
    try:
        answer = await deed(hand)
    except NavigationTimeout as failed:
        kind = CdpLost if failed.details.get("effect") == "unknown" else CdpUnavailable
        raise kind(
            "Real input could not be had, and what stands in for it failed.",
            details={"effect": "none", **failed.details, "causeCode": failed.code},
        ) from None
    return answer, False, [f"{code}: real input could not be had; a script's events were used."]
