"""Every page of the admin, in both languages, on a desktop and on a phone: without serious findings
of axe-core, with nothing cut at the right edge, with landmarks and one title.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import ViewportSize

from runs.models import Run
from tests.support.admin.accessibility import elements_outside, serious_findings
from tests.support.admin.every_page import further_pages, pages, public_pages, rows_of_every_kind
from tests.support.admin.visitor import Visitor

Scheme = Literal["light", "dark"]
SCREENS: tuple[tuple[ViewportSize, Scheme], ...] = (
    ({"width": 1440, "height": 900}, "light"),
    ({"width": 390, "height": 844}, "dark"),
)
LANDMARKS = "document.querySelectorAll('main, nav, header').length >= 3 && document.title"
MAIN = "document.querySelectorAll('main').length === 1 && document.title"


def use_language(visitor: Visitor, language: str) -> None:
    """Choose a language as the switch does."""
    cookie = {"name": "continuity_language", "value": language, "url": visitor.address}
    visitor.do(visitor.page.context.add_cookies([cookie]))  # type: ignore[list-item]


def problems_of(visitor: Visitor, path: str, *, language: str, landmarks: str) -> dict[str, Any]:
    """Open a page in each window and return what is wrong with it there."""
    wrong = {}
    for size, scheme in SCREENS:
        visitor.do(visitor.page.set_viewport_size(size))
        visitor.do(visitor.page.emulate_media(color_scheme=scheme))
        visitor.open(path)
        visitor.wait_for("main, #page")
        found = [*serious_findings(visitor), *elements_outside(visitor)]
        stated = visitor.do(visitor.page.locator("html").get_attribute("lang"))
        if found or stated != language or not visitor.do(visitor.page.evaluate(landmarks)):
            wrong[f"{path} at {size['width']}"] = [str(stated), *found]
    return wrong


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_every_page_is_accessible_and_fits_its_window(
    language: str,
    visitor: Visitor,
    make_run_with_steps: Callable[..., Run],
    make_artifact: Callable[..., str],
    make_task: Callable[..., str],
    tmp_path: Path,
    settings: Any,
) -> None:
    settings.WORKSPACE_ROOTS = (tmp_path,)
    rows_of_every_kind(make_run_with_steps, make_artifact, make_task, tmp_path, count=2)
    use_language(visitor, language)
    wrong: dict[str, Any] = {}
    for path in [*pages(), *further_pages()]:
        wrong |= problems_of(visitor, path, language=language, landmarks=LANDMARKS)
    visitor.sign_out()
    for path in public_pages():
        wrong |= problems_of(visitor, path, language=language, landmarks=MAIN)
    assert wrong == {}
    assert visitor.page_errors == []


@pytest.mark.slow
def test_the_documentation_of_the_api_is_accessible(visitor: Visitor) -> None:
    visitor.open("/api/docs")
    visitor.wait_for(".opblock")
    assert problems_of(visitor, "/api/docs", language="en", landmarks=MAIN) == {}


@pytest.mark.slow
def test_the_switches_of_language_and_times_work_with_the_keyboard(
    visitor: Visitor, make_run_with_steps: Callable[..., Run]
) -> None:
    make_run_with_steps(["succeeded"], status="succeeded")
    visitor.open("/admin/runs/run/")
    visitor.wait_for("#result_list time:has-text('ago')")
    visitor.do(visitor.page.focus("[data-times-switch]"))
    visitor.do(visitor.page.keyboard.press("Enter"))
    visitor.wait_for("#result_list time:has-text(', 20')")
    visitor.do(visitor.page.focus("button[lang=zh-hans]"))
    visitor.do(visitor.page.keyboard.press("Enter"))
    visitor.wait_for("h1:has-text('运行')")
    visitor.do(visitor.page.focus("[data-times-switch]"))
    visitor.do(visitor.page.keyboard.press("Enter"))
    visitor.wait_for("#result_list time:has-text('前')")
