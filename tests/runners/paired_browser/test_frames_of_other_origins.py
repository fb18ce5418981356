"""A page in a paired browser puts a frame of another origin under the mouse: no input reaches
that frame."""

from __future__ import annotations

import pytest

from tests.support.browser.covering_frames import (
    COVER_WHEN,
    covering_page,
    frame_url,
    victim_server,
)
from tests.support.browser.page_actions import LOG
from tests.support.browser.page_server import PageServer
from tests.support.extension.extension_fixtures import ExtensionTask

HOSTS = pytest.mark.parametrize("host", ["127.0.0.1", "localhost"], ids=["same_site", "cross_site"])


def click_button(task: ExtensionTask) -> str:
    """Click the page's button; return `clicked`, or the effect that the error reports."""
    answer = task.perform("browser_click", {"tabId": task.tab_id, "xpath": "//button"})
    return "clicked" if "result" in answer else str(answer["error"]["details"]["effect"])


def test_a_frame_that_comes_under_the_mouse_gets_no_press(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    with victim_server() as victim:
        markup = covering_page(frame_url(victim, "127.0.0.1"), COVER_WHEN["pointermove"])
        extension_task.start(page_server.add("/covering", f"{LOG}{markup}"))
        outcome = click_button(extension_task)
        assert victim.hits["/landed"] == 0
    was_clicked = extension_task.evaluate("log.some((one) => one.startsWith('click:more'))")
    assert (outcome == "clicked") == was_clicked


@pytest.mark.slow
@pytest.mark.parametrize("attributes", ["", 'sandbox="allow-forms allow-same-origin"'])
@pytest.mark.parametrize("when", COVER_WHEN)
@HOSTS
def test_a_frame_that_comes_at_any_moment_is_not_clicked(
    extension_task: ExtensionTask, page_server: PageServer, host: str, when: str, attributes: str
) -> None:
    with victim_server() as victim:
        markup = covering_page(frame_url(victim, host), COVER_WHEN[when], attributes=attributes)
        extension_task.start(page_server.add("/covering", f"{LOG}{markup}"))
        for _ in range(4):
            extension_task.evaluate("uncover(); log.length = 0")
            outcome = click_button(extension_task)
            assert victim.hits["/landed"] == 0
            was_clicked = extension_task.evaluate("log.some((one) => one.startsWith('click:more'))")
            assert outcome == "unknown" or (outcome == "clicked") == was_clicked


@pytest.mark.slow
def test_keys_of_the_extension_do_not_follow_the_focus_into_a_frame(
    extension_task: ExtensionTask, page_server: PageServer
) -> None:
    script = "addEventListener('keydown', () => frame.focus(), true)"
    with victim_server() as victim:
        markup = covering_page(frame_url(victim, "localhost"), script)
        extension_task.start(page_server.add("/focus", f"<input aria-label=Name>{markup}"))
        error = extension_task.error("type", xpath="//input", text="a name", submit=True)
        assert victim.hits["/landed"] == 0
    assert (error["details"]["reason"], error["details"]["effect"]) == ("other_origin", "unknown")
