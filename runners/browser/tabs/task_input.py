"""Send the input of an action to a task's tab: by CDP, or by synthetic events if CDP is not
available (S1 §4.6).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from runners.actions.errors import CdpLost, CdpPermissionDenied, CdpUnavailable
from runners.actions.judged import LOCATE_MS
from runners.actions.parameters import DialogChoice
from runners.actions.results import DownloadedFile
from runners.browser.input.cdp_input import CdpInput, NotDispatched
from runners.browser.input.dom_input import DomInput
from runners.browser.input.interactor import Interactor
from runners.browser.tabs.run_tab import RESERVE_SECONDS, answer_next_dialog, interactor_for
from runners.browser.tabs.stored_downloads import store_downloads
from runners.browser.tabs.task_tab import TaskTab, check_frames, check_page_address, page_notices
from runners.errors import NavigationTimeout
from runners.tools.base import ToolContext

Result = TypeVar("Result")
Interaction = Callable[[Interactor], Awaitable[tuple[Result, list[str]]]]


@dataclass(frozen=True, slots=True)
class SentInput(Generic[Result]):
    """What came of the input of an action.

    Attributes:
        is_real: it was sent by CDP, not by synthetic events.
        downloads, warnings: as in the result of the action.
    """

    result: Result
    is_real: bool
    downloads: list[DownloadedFile] | None
    warnings: list[str]


async def send_input(
    task: TaskTab,
    ctx: ToolContext,
    interact: Interaction[Result],
    *,
    is_real: bool = True,
    locate_ms: int = LOCATE_MS,
    dialog: DialogChoice | None = None,
    may_download: bool = True,
) -> SentInput[Result]:
    """Call `interact`, which returns a result and warnings; store what the page downloads then.

    Args:
        is_real: by CDP if it is available, else by synthetic events.
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

    interactor = interactor_for(task.tab, ctx, timeout_ms=locate_ms, check_url=check_url)
    answer_next_dialog(task.tab, dialog)
    try:
        (result, shown), by_cdp, warnings = await _interact(
            task, interact, interactor, by_cdp=is_real
        )
    finally:
        task.last_input_at = time.monotonic()
    await task.wait_for_windows(ctx.deadline - RESERVE_SECONDS)
    warnings += [ctx.mask(warning) for warning in shown]
    downloads = None
    if may_download:
        downloads, download_warnings = await store_downloads(task, ctx)
        warnings += download_warnings
    return SentInput(result, by_cdp, downloads, warnings + page_notices(task, ctx))


async def _interact(
    task: TaskTab,
    interact: Interaction[Result],
    interactor: Interactor,  # its copies share the elements of references
    *,
    by_cdp: bool,
) -> tuple[tuple[Result, list[str]], bool, list[str]]:
    synthetic = replace(interactor, device=DomInput(task.tab))
    if not by_cdp:
        return await interact(synthetic), False, []
    try:
        device = CdpInput(task.tab, await task.attach())
        return await interact(replace(interactor, device=device)), True, []
    except (NotDispatched, CdpPermissionDenied, CdpUnavailable) as cause:
        task.detach()
        if isinstance(cause, CdpLost):
            raise
        return await _with_dom_input(interact, synthetic, cause)


async def _with_dom_input(
    interact: Interaction[Result], interactor: Interactor, cause: Exception
) -> tuple[tuple[Result, list[str]], bool, list[str]]:
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
