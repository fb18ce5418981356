"""Input through CDP waits for what the page reports about its last input: the answer to a key or to
a move of the pointer can arrive before the event of the navigation that it started."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from runners.browser.action_support.cdp_input import CdpInput
from runners.browser.interaction.input_device import NavigatedAway


class NavigatingPage:
    """A CDP session of a page that navigates at its first input. It answers input at once, and
    reports the navigation before it answers a command of the page's own thread."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self._has_navigated = self._has_reported = False

    async def send(self, method: str, params: Mapping[str, Any]) -> None:
        if method.startswith("Input.dispatch"):
            self.sent.append(str(params["type"]))
            self._has_navigated = True
        elif method.startswith("Runtime."):
            self._has_reported = self._has_navigated

    def is_current(self) -> bool:
        return not self._has_reported


Act = Callable[[CdpInput, Callable[[], bool]], Awaitable[None]]


async def type_and_submit(device: CdpInput, is_current: Callable[[], bool]) -> None:
    await device.type_text("a", is_current)
    await device.press_key("Enter", is_current)


@pytest.mark.parametrize(
    ("act", "sent"),
    [
        (lambda device, check: device.type_text("a longer text", check), ["keyDown", "keyUp"]),
        (lambda device, check: device.click(1, 1, check), ["mouseMoved"]),
        (type_and_submit, ["keyDown", "keyUp"]),
    ],
    ids=["typing", "click", "submit"],
)
def test_no_input_follows_one_that_started_a_navigation(act: Act, sent: list[str]) -> None:
    page = NavigatingPage()
    device = CdpInput(cast(Any, SimpleNamespace(is_alive=True)), cast(Any, page))
    with pytest.raises(NavigatedAway):
        asyncio.run(cast(Any, act(device, page.is_current)))
    assert page.sent == sent
