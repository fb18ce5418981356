"""Pages in scripts that no font of the machine supports are read as fast as others. The browser
here has one font, with Latin letters alone, whatever fonts the machine has."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runners.browser.pool import fallback_font
from runners.browser.pool.fallback_font import FAMILY, FOLDER
from runners.browser.pool.runtime import BrowserRuntime
from runners.invocation.event_loop import LoopThread
from tests.support.browser.box_fonts import EVERY_CHARACTER, NARROW, SPACE, box_font
from tests.support.browser.page_reader import Reader
from tests.support.browser.page_server import PageResponse, PageServer

LATIN = ((0x20, 0x20, SPACE), (0x21, 0x24F, NARROW))
FONTCONFIG = "<fontconfig><dir>{0}</dir><cachedir>{0}/cache</cachedir></fontconfig>"
TEXTS = ("ab", "日志", "로그", "กข", "🔥🚀", "1️⃣")
WIDTHS = [20, 40, 40, 24, 40, 20]  # of these texts, in pixels; letters of the Latin font have 10
MEASURED = """
<meta charset=utf-8><style>span {{ font-size: 20px; {style} }}</style><p>{spans}
<script>
document.title = JSON.stringify([...document.querySelectorAll("span")].map(
  (span) => Math.round(span.getBoundingClientRect().width * 10) / 10));
</script>
"""


@pytest.fixture(scope="module")
def open_latin_reader(
    browser_loop: LoopThread, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], Reader]]:
    """Start a browser on a machine in China whose only font has bold Latin letters: neither the
    language nor the weight favors that font.
    """
    folder = tmp_path_factory.mktemp("fonts")
    font = box_font("Latin Boxes", LATIN, style="Bold", narrow=500)
    (folder / "latin.ttf").write_bytes(font)
    (folder / "machine.conf").write_text(FONTCONFIG.format(folder))
    runtimes: list[BrowserRuntime] = []

    def open_reader() -> Reader:
        runtimes.append(BrowserRuntime())
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FONTCONFIG_FILE", str(folder / "machine.conf"))
            for name in ("LC_ALL", "LC_CTYPE", "LANG"):
                patch.setenv(name, "zh_CN.UTF-8")
            session = browser_loop.submit(runtimes[-1].open_session(run_id="run_x", trust="local"))
            reader = Reader(browser_loop, session.result(30))
            browser_loop.submit(reader.session.ready()).result(60)
        return reader

    yield open_reader
    for runtime in runtimes:
        browser_loop.submit(runtime.close()).result(30)


@pytest.fixture(scope="module")
def latin_reader(open_latin_reader: Callable[[], Reader]) -> Reader:
    """Return a reader of that machine, shared by the tests of this file."""
    return open_latin_reader()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["日志\n", "로그\n", "กข\n", "🔥🚀\n"])
def test_a_long_text_without_a_font_is_read_in_time(
    latin_reader: Reader, page_server: PageServer, text: str
) -> None:
    """Without the fallback font these take 20 s to 75 s on an idle machine, with it 2 s."""
    url = page_server.add(
        "/log", PageResponse(text.encode() * 200_000, mime="text/plain; charset=utf-8")
    )
    content = latin_reader(url, extract={"maxContentLength": 100})["content"]
    assert content["truncated"]
    assert content["sections"][0]["text"].startswith(text * 20)


@pytest.mark.slow
@pytest.mark.parametrize("style", ["", "font-family: 'PingFang SC', Arial, sans-serif"])
def test_a_long_page_without_a_font_is_read_in_time(
    latin_reader: Reader, page_server: PageServer, style: str
) -> None:
    lines = "日志🔥\n" * 200_000
    page = f'<meta charset=utf-8><title>T</title><pre style="{style}">{lines}</pre>'
    content = latin_reader(page_server.add("/long", page))["content"]
    assert content["truncated"]
    assert content["sections"][0]["text"].startswith("```\n日志🔥\n日志🔥\n")


@pytest.mark.parametrize("language", ["", "en", "zh-CN", "ja", "th"])
@pytest.mark.parametrize("style", ["", "font-family: 'PingFang SC', Arial, sans-serif"])
def test_the_fallback_font_is_used_after_the_fonts_of_the_machine(
    latin_reader: Reader, page_server: PageServer, language: str, style: str
) -> None:
    """Letters that have the width of the machine's font are taken from that font."""
    spans = "".join(f"<span lang='{language}'>{text}</span>" for text in TEXTS)
    url = page_server.add("/measured", MEASURED.format(style=style, spans=spans))
    assert json.loads(latin_reader(url)["title"]) == WIDTHS


def test_an_installation_in_a_folder_with_another_name_than_ascii_has_the_fallback_font(
    open_latin_reader: Callable[[], Reader],
    page_server: PageServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Chromium does not open a font whose path is not ASCII."""
    installed = tmp_path / "für alle"
    shutil.copytree(fallback_font.FOLDER, installed)
    monkeypatch.setattr(fallback_font, "FOLDER", installed)
    spans = "".join(f"<span>{text}</span>" for text in TEXTS)
    url = page_server.add("/measured", MEASURED.format(style="", spans=spans))
    assert json.loads(open_latin_reader()(url)["title"]) == WIDTHS


def test_the_fallback_font_equals_the_output_of_its_generator() -> None:
    assert (FOLDER / "fallback.ttf").read_bytes() == box_font(FAMILY, EVERY_CHARACTER)
