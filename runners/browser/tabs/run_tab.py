"""Access of tools to the run tab: the tab that the steps of a run share."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

from runners.actions.own_pages import check_shown_page
from runners.actions.parameters import DialogChoice
from runners.browser.errors import browser_lost
from runners.browser.input.cdp_input import CdpInput
from runners.browser.input.interactor import Interactor
from runners.browser.session.crashes import DialogAnswer
from runners.browser.session.tab import Tab
from runners.tools.base import ToolContext

RESERVE_SECONDS = 0.5  # so that a timeout is raised by the interactor, with details.effect


@contextlib.asynccontextmanager
async def lease_run_tab(ctx: ToolContext, *, fresh: bool = False) -> AsyncIterator[Tab]:
    """Lease the run tab.

    Args:
        fresh: open the tab if there is none. For callers that navigate first.

    Raises:
        PageCrashed: No earlier call opened a page, or it died.
        AddressNotAllowed, OwnPage: The page navigated to one that this caller may not read, or to
            one of the product's own.
    """
    if ctx.browser is None:
        raise browser_lost()
    async with ctx.browser.run_tab(fresh=fresh) as tab:
        if not fresh:
            check_shown_page(tab.page.url, ctx.trust)
        yield tab


def answer_next_dialog(tab: Tab, dialog: DialogChoice | None) -> None:
    """Answer the next question of the page as the caller chose; None: it is dismissed."""
    tab.watch.answer_next_dialog(DialogAnswer(dialog.accept, dialog.text) if dialog else None)


def interactor_for(
    tab: Tab,
    ctx: ToolContext,
    *,
    timeout_ms: int,
    check_url: Callable[[str], None] = lambda url: None,
) -> Interactor:
    """Return an interactor for the tab that searches for elements for up to `timeout_ms`."""
    end = ctx.deadline - RESERVE_SECONDS
    return Interactor(
        tab,
        locate_until=end - ctx.seconds_left() + min(ctx.seconds_left(), timeout_ms / 1000),
        deadline=end,
        device=CdpInput(tab, tab.cdp),
        check_url=check_url,
        nodes=dict(ctx.judged.nodes) if ctx.judged else {},
        expected=ctx.judged,
    )
