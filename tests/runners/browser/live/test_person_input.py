"""A person's mouse and keyboard input on a live page, and the screencast of the page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from runners.browser.live.person_input import send_input
from runners.browser.live.screencast import (
    MAX_CHARACTERS,
    PACE_SECONDS,
    Screencast,
    ScreencastFrame,
)
from runners.errors import ToolFailed
from tests.support.browser.page_actions import evaluate, open_markup
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageServer, serve_pages

FIELD = '<input id="f" style="position:absolute;left:0;top:100px;width:300px;height:40px">'
TIMEOUT_S = 30.0


def mouse(action: str, x: int = 50, y: int = 120, **more: Any) -> dict[str, Any]:
    return {
        "kind": "mouse",
        "action": action,
        "x": x,
        "y": y,
        "button": "left",
        "clicks": 1,
        **more,
    }


def key(name: str, **more: Any) -> list[dict[str, Any]]:
    number = ord(name.upper()) if len(name) == 1 else {"Enter": 13, "Backspace": 8}[name]
    event = {"kind": "key", "key": name, "keyCode": number, **more}
    return [{**event, "action": "down"}, {**event, "action": "up"}]


def send(reader: Reader, *events: dict[str, Any]) -> None:
    async def send_all() -> None:
        async with reader.session.takeover_tab() as tab:
            assert tab is not None
            cdp = await tab.page.context.new_cdp_session(tab.page)
            await send_input(tab, cdp, events, reader.session.trust)
            await cdp.detach()

    reader.wait(send_all())


def value(reader: Reader) -> str:
    return str(evaluate(reader, "document.getElementById('f').value"))


def test_clicks_keys_and_pasted_text_arrive_as_trusted_input(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(reader, page_server, FIELD)
    send(reader, mouse("move", button="none", clicks=0), mouse("down", buttons=1), mouse("up"))
    send(reader, *key("h"), *key("i"), {"kind": "text", "text": " 你好\nthere"})
    assert value(reader) == "hi 你好 there"
    send(reader, *key("Backspace"), *key("a", modifiers=2), *key("x"))
    assert value(reader) == "x"
    assert "click:f:true" in evaluate(reader, "log")


def test_a_person_cannot_open_the_products_own_pages_or_local_schemes(
    open_reader: Callable[..., Reader], page_server: PageServer
) -> None:
    read = open_reader(trust="local")
    open_markup(read, page_server, FIELD)
    for to in ("http://localhost:8000/admin/", "file:///etc/passwd", "javascript:alert(1)"):
        with pytest.raises(ToolFailed):
            send(read, {"kind": "go", "to": to})
    assert value(read) == ""


PAINT = """<canvas id=c width=1280 height=720 style="position:absolute;left:0;top:0"></canvas>
<script>
const c = document.getElementById("c").getContext("2d");
let n = 0;
function step() {
  n += 1;
  c.fillStyle = `rgb(${n < 90 ? n : 200}, 0, 0)`;
  c.fillRect(0, 0, 1280, 720);
  if (n < 90) requestAnimationFrame(step);
}
step();
</script>"""
GRAIN = """<script>
const noise = c.createImageData(1280, 720);
for (let at = 0; at < noise.data.length; at += 1)
  noise.data[at] = at % 4 === 3 ? 255 : Math.random() * 256;
n = 90;
requestAnimationFrame(() => c.putImageData(noise, 0, 0));
</script>"""


def record_frames(reader: Reader) -> list[tuple[float, ScreencastFrame]]:
    """Return the frames of a page with their times, from its first change until it is at rest."""
    frames: list[tuple[float, ScreencastFrame]] = []

    async def record() -> None:
        async with reader.session.takeover_tab() as tab:
            assert tab is not None
            cdp = await tab.page.context.new_cdp_session(tab.page)
            screencast = Screencast(cdp, lambda one: frames.append((time.monotonic(), one)))
            screencast.start()
            async with asyncio.timeout(TIMEOUT_S):
                while not frames or time.monotonic() - frames[-1][0] < 2:
                    await asyncio.sleep(0.1)
            await screencast.stop()
            await cdp.detach()

    reader.wait(record())
    return frames


@pytest.mark.slow
def test_the_frame_rate_is_limited_and_the_last_frame_shows_the_final_state(
    reader: Reader, page_server: PageServer
) -> None:
    open_markup(reader, page_server, PAINT)
    frames = record_frames(reader)
    last = frames[-1][1]
    assert (last.width, last.height) == (1280, 720)
    assert len(frames) <= 3 + (frames[-1][0] - frames[0][0]) / PACE_SECONDS
    picture = f"fetch('data:image/jpeg;base64,{last.data}').then(r => r.blob())"
    drawn = "(i => (c.drawImage(i, 0, 0), c.getImageData(640, 360, 1, 1).data[0]))"
    red = evaluate(reader, f"{picture}.then(createImageBitmap).then{drawn}")
    assert abs(red - 200) < 5  # the final state of the page


@pytest.mark.slow
def test_large_frames_are_sent_at_lower_quality(reader: Reader, page_server: PageServer) -> None:
    open_markup(reader, page_server, PAINT + GRAIN)
    frames = record_frames(reader)
    assert len(frames[-1][1].data) > MAX_CHARACTERS / 4
    assert all(len(one.data) <= MAX_CHARACTERS for _, one in frames)


def test_a_person_can_use_a_frame_of_another_origin(
    reader: Reader, page_server: PageServer
) -> None:
    with serve_pages() as other:
        url = other.add("/frame", f"<body style='margin:0'>{FIELD}")
        open_markup(
            reader,
            page_server,
            f'<iframe src="{url}" style="position:absolute;left:0;top:0;border:0;height:300px">',
        )
        send(reader, mouse("down"), mouse("up"), *key("a"))

    async def field_value() -> str:
        async with reader.session.run_tab() as tab:
            return str(await tab.page.frames[1].evaluate("document.getElementById('f').value"))

    assert reader.wait(field_value()) == "a"
