"""An agent works in a person's visible browser; the person takes over with a real mouse, gives the
page back, and the web process is killed in the middle.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.agent.agent_goals import tool_results
from tests.support.agent.model_server import ModelRequest, model_server
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.page_server import PageServer, serve_pages
from tests.support.extension.extension_browser import extension_browser
from tests.support.extension.screen import require_screen, virtual_screen
from tests.support.extension.visible_page import OPTIONS, VisiblePage, pair
from tests.support.installation.temporary_home import TemporaryHome, temporary_home
from tests.support.runs.waiting import eventually

DONE = "The person pressed Ready."
PAGE = """<!doctype html><title>Order</title><h1>Order</h1><p id=state>Not ready.</p>
<button onclick="document.getElementById('state').textContent = 'Pressed.'"
  style="position: fixed; left: 40px; top: 200px; width: 200px; height: 60px">Ready</button>"""
BUTTON = (140, 230)
WORKING = "Continuity is working"
RESTART_SECONDS = 60.0


class PatientModel:
    """Open the page, and look at it until its button was pressed."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, request: ModelRequest) -> Turn:
        """Return the next turn."""
        results = tool_results(request)
        if not results:
            return Turn("", [Call("task_start", {"url": self.url}, "open")])
        if "Pressed." in str(request.body["messages"]):
            return complete(DONE)
        tab = results[0]["result"]["tabId"]
        wait = {"tabId": tab, "text": "never", "timeoutMs": 1500}
        return Turn("", [Call("browser_wait_for_text", wait, f"wait{len(results)}")])


@dataclass(slots=True)
class Stack:
    """A running installation, and a client with the token of the browser's owner."""

    home: TemporaryHome
    api: httpx.Client
    pages: PageServer

    def ticket(self) -> str:
        """Return a ticket that pairs a browser."""
        return str(self.api.post("/api/v1/plugin/ticket", json={}).json()["ticket"])

    def begin_task(self) -> str:
        """Create a task that works in the paired browser, and return its id."""
        body = {"message": "Wait until the order is ready.", "targetId": "plugin"}
        answer = self.api.post("/api/v1/tasks", json=body)
        assert answer.status_code < 300, answer.text
        return str(answer.json()["taskId"])

    def status(self, task_id: str) -> str:
        """Return the task's status."""
        return str(self.api.get(f"/api/v1/tasks/{task_id}").json()["status"])

    def events(self, task_id: str) -> list[dict[str, Any]]:
        """Return the task's log."""
        answer = self.api.get(f"/api/v1/tasks/{task_id}/events?limit=500").json()
        found: list[dict[str, Any]] = answer["events"]
        return found


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    require_screen()
    with serve_pages() as pages, model_server() as model:
        model.answer = PatientModel(pages.add("/order", PAGE))
        env = {
            "CONTINUITY_LLM_MODEL": "scripted",
            "CONTINUITY_LLM_API_KEY": "k" * 20,
            "CONTINUITY_LLM_BASE_URL": f"{model.url}/v1",
        }
        with temporary_home(tmp_path / "home", **env) as home:
            url = home.start("up").wait_until_ready()
            token = home.run("create_token", "anna", "--trust", "local").stdout.strip()
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=url, headers=headers, timeout=30) as api:
                yield Stack(home, api, pages)


@pytest.fixture
def person(stack: Stack, tmp_path: Path) -> Iterator[VisiblePage]:
    """Yield the page of a task in a paired browser, in front of the person."""
    with (
        virtual_screen() as screen,
        extension_browser(tmp_path / "profile", display=screen.display) as browser,
    ):
        pair(browser, str(stack.api.base_url), stack.ticket())
        yield VisiblePage(screen, browser, browser.page(OPTIONS))


def show_task_page(person: VisiblePage, url: str) -> None:
    """Bring the tab that the agent has opened to the front."""
    person.page = person.browser.page(url)
    person.browser.evaluate(
        f"chrome.tabs.query({{url: {url!r}}})"
        ".then(([tab]) => chrome.tabs.update(tab.id, {active: true}).then(() => null))"
    )


@pytest.mark.slow
def test_a_person_takes_over_and_gives_back_although_the_web_process_was_killed(
    stack: Stack, person: VisiblePage
) -> None:
    task_id = stack.begin_task()
    show_task_page(person, stack.pages.url("/order"))
    for _ in range(2):  # task_start, and the first look at the page
        person.wait_for_overlay(WORKING)
        person.wait_for_overlay("")
    person.wait_for_overlay(WORKING)
    os.kill(stack.home.pid("web"), signal.SIGKILL)
    person.wait_for_overlay("", RESTART_SECONDS)
    person.wait_for_overlay(WORKING, RESTART_SECONDS)  # an action by a new connection
    person.screen.click(person.page, *BUTTON)
    person.wait_for_overlay("You have taken over")
    assert eventually(lambda: stack.status(task_id) == "takeover", 20)
    assert person.page.evaluate("document.getElementById('state').textContent") == "Pressed."
    person.press_button("Resume")
    assert eventually(lambda: stack.status(task_id) == "ongoing", 30)
    events = stack.events(task_id)
    assert DONE in str(events)
    acted = [event["data"] for event in events if event["type"] == "personActed"]
    assert sum(data.get("clicks", 0) for data in acted) >= 1, acted
