"""The tab that the steps of one run share, as tools get it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

from runners.browser.errors import browser_lost
from runners.browser.interaction.input_device import InputDevice
from runners.browser.interaction.interactor import Interactor
from runners.browser.session.tab import Tab
from runners.network.address import check_address
from runners.tools.base import ToolContext

RESERVE_SECONDS = 0.5  # so that the hand itself tells what a press may have done when time is up


@contextlib.asynccontextmanager
async def lease_run_tab(ctx: ToolContext, *, fresh: bool = False) -> AsyncIterator[Tab]:
    """Lease the run's own tab; `fresh` for who opens an address in it.

    Raises:
        PageCrashed: No call before opened a page, or it died.
        AddressNotAllowed: The page went where this caller may not look.
    """
    if ctx.browser is None:
        raise browser_lost()
    async with ctx.browser.run_tab(fresh=fresh) as tab:
        if not fresh and ctx.trust != "local":
            check_address(tab.page.url, ctx.trust)
        yield tab


def interactor_for(
    tab: Tab,
    ctx: ToolContext,
    *,
    timeout_ms: int,
    device: InputDevice | None = None,
    check_url: Callable[[str], None] = lambda url: None,
) -> Interactor:
    """Return the hand that works on the tab and looks for elements for so long at most."""
    end = ctx.deadline - RESERVE_SECONDS
    return Interactor(
        tab,
        locate_until=end - ctx.seconds_left() + min(ctx.seconds_left(), timeout_ms / 1000),
        deadline=end,
        device=device,
        check_url=check_url,
    )
