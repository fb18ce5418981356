"""The overlay on pages that remove it, and on the page of a task that waits for a person."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.browser.page_server import PageResponse, PageServer
from tests.support.extension.devtools import DevTools
from tests.support.extension.extension_browser import EXTENSION_ID
from tests.support.extension.extension_fixtures import ExtensionTask
from tests.support.extension.visible_page import overlay_texts

POPUP = f"chrome-extension://{EXTENSION_ID}/popup/popup.html"
HOST = "document.querySelector('continuity-overlay')"
OBSERVE = "observe(document.documentElement, {childList: true})"
REMOVE = f"new MutationObserver(() => {HOST}?.remove()).{OBSERVE}; 1"
REMOVE_AT_ONCE = "addEventListener('beforetoggle', (event) => event.target.remove(), true); 1"
APPROVAL = {
    "type": "confirmation",
    "act": "submit",
    "tool": "browser_click",
    "host": "shop.example",
    "element": 'button "Buy"',
}


@dataclass(slots=True)
class Overlaid:
    """A task that runs, and its page, over which the overlay is hidden between the actions."""

    task: ExtensionTask
    page: DevTools

    def status(self, status: str, **fields: Any) -> None:
        """Send the task's status, as the server does when it changes."""
        message = {"type": "task_status", "taskId": self.task.task_id, "status": status}
        self.task.server.send({**message, "title": "Prices", **fields})

    def sent(self, kind: str) -> dict[str, Any]:
        """Wait for a message about the task."""
        task_id = self.task.task_id
        return self.task.server.wait_for(
            lambda message: message["type"] == kind and message.get("taskId") == task_id
        )

    def takeovers(self) -> list[dict[str, Any]]:
        """Return the takeovers of the task that were sent."""
        sent = self.task.server.of_type("takeover")
        return [message for message in sent if message["taskId"] == self.task.task_id]

    def wait_until(self, is_it: Any) -> None:
        """Wait until a condition holds."""
        until = time.monotonic() + 10
        while not is_it():
            assert time.monotonic() < until
            time.sleep(0.02)

    def has_overlay(self) -> bool:
        """Return whether the overlay is where it belongs in the page."""
        return bool(self.page.evaluate(f"{HOST}?.parentNode === document.documentElement"))

    def badge(self) -> str:
        """Return the tooltip of the toolbar button."""
        return str(self.task.browser.evaluate("chrome.action.getTitle({})"))


@pytest.fixture
def overlaid(extension_task: ExtensionTask, page_server: PageServer) -> Iterator[Overlaid]:
    extension_task.start(page_server.add("/overlaid", "<title>O</title><button>Buy</button>"))
    shown = Overlaid(extension_task, extension_task.browser.page(extension_task.url))
    shown.status("running")
    shown.wait_until(shown.has_overlay)
    yield shown
    shown.page.close()
    shown.status("completed")


@pytest.mark.parametrize("hostile", [REMOVE, REMOVE_AT_ONCE], ids=["observer", "event"])
def test_a_page_that_removes_the_overlay_pauses_its_task(overlaid: Overlaid, hostile: str) -> None:
    overlaid.page.evaluate(hostile)
    overlaid.page.evaluate(f"{HOST}.remove()")
    assert overlaid.sent("takeover")["reason"] == "overlay_removed"
    overlaid.wait_until(lambda: "removes the panel, so its task is paused" in overlaid.badge())
    refused = overlaid.task.server.begin(
        "browser_observe", {"tabId": overlaid.task.tab_id}, task_id=overlaid.task.task_id
    )
    assert overlaid.task.server.result(refused, "ack")["error"]["code"] == "TASK_BUSY"


@pytest.mark.slow
def test_the_person_lets_a_task_go_on_without_its_overlay_in_the_popup(overlaid: Overlaid) -> None:
    overlaid.page.evaluate(REMOVE)
    overlaid.page.evaluate(f"{HOST}.remove()")
    overlaid.sent("takeover")
    overlaid.status("takeover")
    overlaid.task.browser.open_tab(POPUP)
    popup = overlaid.task.browser.page(POPUP)
    text = "document.querySelector('.notice')?.textContent ?? ''"
    overlaid.wait_until(lambda: popup.evaluate(text).startswith("Paused: the page removes"))
    popup.evaluate("document.querySelector('.task .main').click()")
    overlaid.sent("resume")
    overlaid.status("running")
    assert "Buy" in overlaid.task("observe")["text"]
    popup.evaluate("location.reload()")
    overlaid.wait_until(lambda: popup.evaluate(text).startswith("Working. The page removes"))
    popup.send("Page.close")
    assert "removes the panel" in overlaid.badge()
    assert len(overlaid.takeovers()) == 1


@pytest.mark.slow
def test_a_page_that_removed_the_overlay_while_its_task_waited_pauses_it_then(
    overlaid: Overlaid,
) -> None:
    overlaid.status("ongoing", waitsFor=APPROVAL)
    overlaid.wait_until(lambda: overlay_texts(overlaid.page))
    overlaid.page.evaluate(REMOVE)
    overlaid.page.evaluate(f"{HOST}.remove()")
    overlaid.wait_until(lambda: "works on a page that removes the panel" in overlaid.badge())
    assert not overlaid.takeovers()
    overlaid.status("running")
    assert overlaid.sent("takeover")["reason"] == "overlay_removed"


@pytest.mark.slow
def test_the_next_document_has_the_overlay_again(overlaid: Overlaid) -> None:
    overlaid.page.evaluate(REMOVE)
    overlaid.page.evaluate(f"{HOST}.remove()")
    overlaid.sent("takeover")
    overlaid.page.evaluate("location.reload()")
    overlaid.wait_until(overlaid.has_overlay)
    overlaid.wait_until(lambda: "you have taken over" in overlaid.badge())


@pytest.mark.slow
@pytest.mark.parametrize(
    "removal",
    [
        f"{HOST}.remove()",
        f"document.body.append({HOST})",
        "document.open(); document.write('<title>New</title>'); document.close()",
        "document.replaceChild(document.createElement('html'), document.documentElement)",
    ],
    ids=["removed", "moved", "written", "replaced"],
)
def test_an_overlay_that_a_page_removes_is_put_back(overlaid: Overlaid, removal: str) -> None:
    for _ in range(15):
        overlaid.page.evaluate(f"{removal}; 1")
        overlaid.wait_until(overlaid.has_overlay)
    assert not overlaid.takeovers()


@pytest.mark.slow
def test_the_overlay_says_what_waits_for_an_approval(overlaid: Overlaid) -> None:
    overlaid.status("ongoing", waitsFor=APPROVAL)
    heading = "Continuity waits for your approval: submit a form on shop.example"
    overlaid.wait_until(lambda: heading in overlay_texts(overlaid.page))
    assert 'button "Buy" · Approve or refuse it in Continuity.' in overlay_texts(overlaid.page)
    assert overlaid.badge() == "Continuity: an agent waits for you"
    overlaid.page.send("Input.dispatchKeyEvent", type="keyDown", key="a", text="a")
    overlaid.status("running")
    overlaid.wait_until(lambda: not overlay_texts(overlaid.page))
    assert not overlaid.takeovers()  # the page is the person's while the agent waits


HIDES_INPUT = (
    "for (const type of ['pointermove', 'pointerdown', 'keydown', 'wheel'])"
    " addEventListener(type, (event) => event.stopImmediatePropagation(), true);"
)
NOT_WATCHED = ("CDP_PERMISSION_DENIED", "not_watched", "none")


def loaded_before_the_watch(overlaid: Overlaid) -> None:
    """Load the page as before the extension could run there; then it may."""
    unregister = "chrome.scripting.unregisterContentScripts()"
    overlaid.task.browser.evaluate(f"{unregister}.then(() => 1)")
    overlaid.page.evaluate("globalThis.isOld = true; location.reload()")
    overlaid.wait_until(lambda: overlaid.page.evaluate("!globalThis.isOld && !!document.body"))
    overlaid.page.evaluate(f"{HIDES_INPUT} globalThis.clicks = 0; onclick = () => clicks += 1; 1")


def test_a_page_that_was_there_before_the_watch_is_read_and_gets_no_input_until_it_is_reloaded(
    overlaid: Overlaid,
) -> None:
    loaded_before_the_watch(overlaid)
    number = overlaid.task.index()["Buy"]
    error = overlaid.task.error("click", clickId=number)
    details = error["details"]
    assert (error["code"], details["reason"], details["effect"]) == NOT_WATCHED
    assert overlaid.page.evaluate("clicks") == 0
    overlaid.wait_until(lambda: "Reload page" in overlay_texts(overlaid.page))
    overlaid.page.evaluate("location.reload()")
    overlaid.wait_until(lambda: overlaid.page.evaluate("!globalThis.clicks && !!document.body"))
    assert "Reload page" not in overlay_texts(overlaid.page)
    assert overlaid.task("click", clickId=overlaid.task.index()["Buy"])["clicked"]


@pytest.mark.slow
def test_a_request_to_approve_on_a_page_to_reload_says_where_to_answer(overlaid: Overlaid) -> None:
    loaded_before_the_watch(overlaid)
    overlaid.task.error("click", clickId=overlaid.task.index()["Buy"])
    overlaid.status("ongoing", waitsFor=APPROVAL)
    said = 'button "Buy" · Approve or refuse it in Continuity.\nThis page was open before'
    overlaid.wait_until(lambda: any(said in text for text in overlay_texts(overlaid.page)))


DOCUMENTS = {
    "text/plain": b"A text of one line",
    "image/svg+xml": b"<svg xmlns='http://www.w3.org/2000/svg'><text y='20'>A</text></svg>",
    "application/xhtml+xml": b"<html xmlns='http://www.w3.org/1999/xhtml'><body>A</body></html>",
    "text/html": b"<script>open('/popup')</script><body contenteditable>A",
}


@pytest.mark.slow
@pytest.mark.parametrize("media_type", DOCUMENTS)
def test_documents_of_each_kind_get_input_if_the_watch_was_first(
    extension_task: ExtensionTask, page_server: PageServer, media_type: str
) -> None:
    page_server.add("/popup", "<title>Popup</title><button>B</button>")
    answer = PageResponse(DOCUMENTS[media_type], mime=media_type)
    extension_task.start(page_server.add("/document", lambda query: answer))
    for tab in extension_task.perform("browser_list_tabs", {})["result"]["tabs"]:
        pressed = extension_task("press_key", key="ArrowDown", tabId=tab["tabId"])
        assert pressed["pressed"]
