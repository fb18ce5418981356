"""Submit a search: by the form's button, by Enter, or by the search button beside the field."""

from __future__ import annotations

import time
from dataclasses import replace

from runners.browser.input.interactor import Interactor
from runners.browser.input.locator import LocatedElement
from runners.browser.parameters import SearchButton
from runners.browser.reading import page_watch
from runners.errors import ElementNotFound


async def submit_search(interactor: Interactor, query: str) -> tuple[LocatedElement, str]:
    """Submit the search whose field was filled last; return the element, and how it was sent.

    It is sent by the submit button of the field's form (`button`), else by Enter (`enter`). If
    Enter starts nothing, the search button beside the field is clicked (`searchButton`). A search
    that has begun is not sent again.

    Raises:
        ElementNotFound, InvalidTarget, NavigationTimeout, PageCrashed: As `Interactor.click`.
    """
    default = await interactor.locate(None, "clickable")
    if not default.key:
        return await interactor.click(None), "button"
    if not await _has_search_button(interactor):
        return await interactor.click(None), "enter"
    await page_watch.observe_untouched(interactor.tab)
    pressed = await interactor.click(None)
    if await page_watch.has_begun(interactor.tab, query):
        return pressed, "enter"
    return await interactor.click(SearchButton()), "searchButton"


async def _has_search_button(interactor: Interactor) -> bool:
    try:
        await replace(interactor, locate_until=time.monotonic()).locate(SearchButton(), "any")
    except ElementNotFound:
        return False
    return True
