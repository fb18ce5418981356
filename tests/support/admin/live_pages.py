"""A form that a person signs in to on the agent's page, and actions of a user of the admin site."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from decisions.identity.principals import Principal
from runs.conversations.services import create_task
from tests.support.admin.visitor import Visitor
from tests.support.agent.agent_goals import observations, tool_results
from tests.support.agent.model_server import ModelRequest
from tests.support.agent.model_turns import Call, Turn, complete

SECRET = "geheim-4711"  # typed by a person; it must not be stored anywhere
FORM = """<!doctype html><title>Sign in</title><style>
body{margin:0;font:20px sans-serif}
input,button{position:absolute;left:40px;width:400px;height:40px}
</style><h1>Sign in</h1>
<input id=f style="top:100px" placeholder=Name><input id=word type=password style="top:160px">
<button id=go style="top:220px" onclick="location='/inside?'+f.value.length+'-'+word.value.length">
Go</button><button id=ask style="top:280px" onclick="document.title=String(confirm('Sure?'))">Ask
</button>
<a id=new target=_blank href="/other" style="position:absolute;left:40px;top:340px">New</a>"""
SIGNED_IN = "<!doctype html><title>Inside</title><main><h1>Inside</h1><p>Your number is 42.</main>"


class SignInModel:
    """A model that opens the form, reads it, and answers with the text of the final page."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.tool_results: list[dict[str, Any]] = []

    def __call__(self, request: ModelRequest) -> Turn:
        """Return the next turn."""
        self.tool_results = tool_results(request)
        if not self.tool_results:
            return Turn("I open the form.", [Call("task_start", {"url": self.url}, "open")])
        tab = self.tool_results[0]["result"]["tabId"]
        if "Your number is 42" in str(observations(request)):
            return complete("Your number is 42.")
        if "newTab" in self.tool_results[-1].get("page", {}):
            return complete("It had been closed.")
        call = Call("browser_dom_index", {"tabId": tab}, f"index{len(self.tool_results)}")
        waits = len(self.tool_results) == 1  # until the test resumes the stream
        return Turn("I look at it.", [call], stall_at=0 if waits else None)


def save_screenshot(visitor: Visitor, name: str) -> None:
    """Save a screenshot if CONTINUITY_PICTURES names a folder."""
    if folder := os.environ.get("CONTINUITY_PICTURES"):
        visitor.do(visitor.page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True))


def start_sign_in_task(visitor: Visitor, principal: Principal) -> str:
    task, _ = create_task(principal=principal, message="Sign in and tell me my number.")
    visitor.open(f"/admin/runs/task/{task['taskId']}/change/")
    visitor.wait_for("[data-chat-live]:not([hidden])")
    return str(task["taskId"])


def click_at(visitor: Visitor, x: int, y: int) -> None:
    """Click on a position of the agent's page, in pixels of that page."""
    box = visitor.do(visitor.page.locator("[data-live-picture]").bounding_box())
    left, top = box["x"] + x * box["width"] / 1280, box["y"] + y * box["height"] / 720
    visitor.do(visitor.page.mouse.click(left, top))


def take_over(visitor: Visitor) -> None:
    visitor.click("button:has-text('Take over')")
    visitor.wait_for("[data-status-now=takeover] [data-live-bar]:not([hidden])")
    visitor.wait_for("[data-live-screen][data-acts]")
    visitor.wait_for("[data-live-picture][src^='data:image/jpeg']")


def give_back(visitor: Visitor) -> None:
    visitor.click("button:has-text('Give back')")
    visitor.wait_for("[data-status-now=running]")


class WaitingModel:
    """A model that opens the form, waits for a person in its second turn, and then answers with the
    text of the page.
    """

    def __init__(self, url: str, stop: tuple[str, Mapping[str, Any]]) -> None:
        self.url, self._stop = url, stop
        self.tool_results: list[dict[str, Any]] = []

    def __call__(self, request: ModelRequest) -> Turn:
        """Return the next turn."""
        self.tool_results = tool_results(request)
        if not self.tool_results:
            return Turn("", [Call("task_start", {"url": self.url}, "open")])
        if len(self.tool_results) > 1:
            is_signed_in = "Your number is 42" in str(observations(request))
            return complete("I see your number." if is_signed_in else "I see none.")
        name, args = self._stop
        tab = (
            {"tabId": self.tool_results[0]["result"]["tabId"]}
            if name.startswith("browser_")
            else {}
        )
        return Turn("", [Call(name, {**args, **tab}, "stop")])
