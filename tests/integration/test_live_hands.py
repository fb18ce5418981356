"""A person's mouse and keyboard on a page of ours, and the pictures of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from runners.browser.live.person import act
from runners.browser.live.screencast import MAX_CHARACTERS, Picture, Screencast
from runners.errors import ToolFailed
from tests.support.browsing import Reader
from tests.support.on_page import evaluate, show
from tests.support.pages import PageServer

pytest_plugins = ["tests.support.browser_fixtures"]
FIELD = '<input id="f" style="position:absolute;left:0;top:100px;width:300px;height:40px">'
PATIENCE_S = 30.0


def mouse(action: str, x: int = 50, y: int = 120, **more: Any) -> dict[str, Any]:
    return {"kind": "mouse", "action": action, "x": x, "y": y, "button": "left", "clicks": 1,
            **more}  # fmt: skip


def key(name: str, **more: Any) -> list[dict[str, Any]]:
    number = ord(name.upper()) if len(name) == 1 else {"Enter": 13, "Backspace": 8}[name]
    told = {"kind": "key", "key": name, "keyCode": number, **more}
    return [{**told, "action": "down"}, {**told, "action": "up"}]


def do(read: Reader, *events: dict[str, Any]) -> None:
    async def doing() -> None:
        async with read.session.between_calls() as tab:
            assert tab is not None
            line = await tab.page.context.new_cdp_session(tab.page)
            await act(tab, line, events, read.session.trust)
            await line.detach()

    read.wait(doing())


def value(read: Reader) -> str:
    return str(evaluate(read, "document.getElementById('f').value"))


def test_clicks_keys_pasted_and_composed_text_are_real_input(
    read: Reader, page_server: PageServer
) -> None:
    show(read, page_server, FIELD)
    do(read, mouse("move", button="none", clicks=0), mouse("down", buttons=1), mouse("up"))
    do(read, *key("h"), *key("i"), {"kind": "text", "text": " 你好\nthere"})
    assert value(read) == "hi 你好 there"
    do(read, *key("Backspace"), *key("a", modifiers=2), *key("x"))
    assert value(read) == "x"
    assert "click:f:true" in evaluate(read, "log")


def test_a_person_is_kept_from_our_own_pages_and_a_remote_one_from_private_addresses(
    open_reader: Callable[..., Reader], page_server: PageServer
) -> None:
    read = open_reader(trust="local")
    show(read, page_server, FIELD)
    for to in ("http://localhost:8000/admin/", "file:///etc/passwd", "javascript:alert(1)"):
        with pytest.raises(ToolFailed):
            do(read, {"kind": "go", "to": to})
    assert value(read) == ""


def test_pictures_come_no_faster_than_they_are_taken_and_the_last_one_is_seen(
    read: Reader, page_server: PageServer
) -> None:
    paint = "document.body.style.background = n < 90 ? `rgb(${n}, 0, 0)` : 'rgb(0, 255, 0)'"
    again = "if (n < 90) requestAnimationFrame(step)"
    script = f"let n = 0; const step = () => {{ n += 1; {paint}; {again} }}; step()"
    show(read, page_server, f"<script>{script}</script>")
    pictures: list[Picture] = []

    async def look() -> str:
        async with read.session.between_calls() as tab:
            assert tab is not None
            line = await tab.page.context.new_cdp_session(tab.page)
            cast = Screencast(line, pictures.append)
            await cast.start()
            how = {"format": "jpeg", "quality": 60}
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    await asyncio.sleep(1.0)
                    now = (await line.send("Page.captureScreenshot", how))["data"]
                    n = await tab.page.evaluate("n")
                    if n >= 90 and pictures[-1].data == now:
                        break
            await cast.stop()
            return str(now)

    assert read.wait(look()) == pictures[-1].data
    assert (pictures[-1].width, pictures[-1].height) == (1280, 720)
    assert len(pictures[-1].data) <= MAX_CHARACTERS
    assert len({one.data for one in pictures}) < 60  # of 90 that were painted
