"""Input through CDP waits for what the page reports about its last input: the answer to a key or to
a move of the pointer can arrive before the event of the navigation that it started."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from playwright.async_api import Error

from runners.browser.input.cdp_input import CdpInput
from runners.browser.input.checks import OUTSIDE, NavigatedAway, PressMissed
from runners.errors import PageCrashed


class NavigatingPage:
    """A page that navigates at its first input, and its CDP session. It answers input at once, and
    reports the navigation before it answers a command of the page's own thread."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.points: list[tuple[float, float]] = []
        self._has_navigated = self._has_reported = False

    async def send(self, method: str, params: Mapping[str, Any]) -> None:
        if method.startswith("Input.dispatch"):
            self.sent.append(str(params["type"]))
            self.points.append((params.get("x", 0), params.get("y", 0)))
            self._has_navigated = True
        elif method.startswith("Runtime."):
            await self.require_focus(has_started=False)

    async def require_focus(self, *, has_started: bool) -> None:
        self._has_reported = self._has_navigated

    async def is_ready(self) -> bool:
        return True

    async def is_received(self) -> bool:
        raise AssertionError("nothing was pressed")

    def is_current(self) -> bool:
        return not self._has_reported


Act = Callable[[CdpInput, Any], Awaitable[None]]


async def type_and_submit(device: CdpInput, page: Any) -> None:
    await device.type_text("a", page)
    await device.press_key("Enter", page)


@pytest.mark.parametrize(
    ("act", "sent"),
    [
        (lambda device, page: device.type_text("a longer text", page), ["keyDown", "keyUp"]),
        (lambda device, page: device.click(1, 1, page), ["mouseMoved"]),
        (type_and_submit, ["keyDown", "keyUp"]),
    ],
    ids=["typing", "click", "submit"],
)
def test_no_input_follows_one_that_started_a_navigation(act: Act, sent: list[str]) -> None:
    page = NavigatingPage()
    device = CdpInput(cast(Any, SimpleNamespace(is_alive=True)), cast(Any, page))
    with pytest.raises(NavigatedAway):
        asyncio.run(cast(Any, act(device, page)))
    assert page.sent == sent


class StayingPage(NavigatingPage):
    """A page that stays, and whose element receives no press."""

    async def is_received(self) -> bool:
        return False

    def is_current(self) -> bool:
        return True


def test_a_press_that_its_element_has_not_received_is_released_outside() -> None:
    page = StayingPage()
    device = CdpInput(cast(Any, SimpleNamespace(is_alive=True)), cast(Any, page))
    with pytest.raises(PressMissed):
        asyncio.run(device.click(1, 1, cast(Any, page)))
    assert page.sent == ["mouseMoved", "mousePressed", "mouseReleased"]
    assert page.points == [(1, 1), (1, 1), OUTSIDE]


class LostPage:
    """A tab whose own CDP session, which every page script needs too, does not answer any more."""

    @property
    def cdp(self) -> LostPage:
        return self

    async def send(self, method: str, params: Mapping[str, Any]) -> None:
        raise Error("Protocol error: Target closed.")


def test_without_the_tabs_own_session_the_page_is_lost() -> None:
    page = cast(Any, LostPage())
    with pytest.raises(PageCrashed):
        asyncio.run(CdpInput(page, page).press_key("Enter", cast(Any, NavigatingPage())))
