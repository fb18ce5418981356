"""The live page of a task, in two real browsers: a person at the admin site sees the agent's page,
takes it over in the middle of a task, works on it with mouse and keyboard, and gives it back.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decisions.models import AuditEntry
from decisions.principals import Principal
from runs.conversations.services import create_task
from runs.models import Run, Task, TaskEvent
from runs.worker import WorkerPlace
from tests.integration.conftest import in_background, place  # noqa: F401  (fixtures)
from tests.support.browsing_model import results
from tests.support.model_server import Asked, ModelServer
from tests.support.model_turns import Call, Turn, complete
from tests.support.pages import PageServer
from tests.support.visiting import Visitor

pytest_plugins = [
    "tests.support.admin_fixtures", "tests.support.agent_fixtures",
    "tests.support.browser_fixtures", "tests.support.model_fixtures",
    "tests.support.rest_fixtures", "tests.support.visitor_fixtures",
    "tests.support.workspace_fixtures",
]  # fmt: skip
Background = Callable[[Callable[[], object]], Any]
PATIENCE_S = 60.0
SECRET = "geheim-4711"  # typed by a person: it has to be nowhere
FORM = """<!doctype html><title>Sign in</title><style>
body{margin:0;font:20px sans-serif}
input,button{position:absolute;left:40px;width:400px;height:40px}
</style><h1>Sign in</h1>
<input id=f style="top:100px" placeholder=Name><input id=word type=password style="top:160px">
<button id=go style="top:220px" onclick="location='/inside?'+f.value.length+'-'+word.value.length">
Go</button><button id=ask style="top:280px" onclick="document.title=String(confirm('Sure?'))">Ask
</button>
<a id=new target=_blank href="/other" style="position:absolute;left:40px;top:340px">New</a>"""
INSIDE = "<!doctype html><title>Inside</title><main><h1>Inside</h1><p>Your number is 42.</main>"


def until(is_so: Callable[[], object]) -> None:
    """Wait until it is so."""
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


class Signing:
    """A model that opens the form, asks to read it, and answers with what it sees in the end."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.told: list[dict[str, Any]] = []

    def __call__(self, asked: Asked) -> Turn:
        """Say what comes next."""
        self.told = results(asked)
        if not self.told:
            return Turn("I open the form.", [Call("task_start", {"url": self.url}, "open")])
        tab = self.told[0]["result"]["tabId"]
        if "Your number is 42" in str(self.told):
            return complete("Your number is 42.")
        call = Call("browser_dom_index", {"tabId": tab}, f"index{len(self.told)}")
        thinks = len(self.told) == 1  # until the test lets it go on
        return Turn("I look at it.", [call], stall_at=0 if thinks else None)


@pytest.fixture
def model_that_signs_in(model: ModelServer, page_server: PageServer) -> Signing:
    """The scripted model, and the pages that it works on."""
    page_server.add("/inside", INSIDE)
    page_server.add("/other", "<!doctype html><title>Other</title><h1>Other</h1>")
    signing = Signing(page_server.add("/form", FORM))
    model.answer = signing
    return signing


def show(visitor: Visitor, name: str) -> None:
    """Leave a picture where somebody asked for one."""
    if folder := os.environ.get("CONTINUITY_PICTURES"):
        visitor.do(visitor.page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True))


def begin(visitor: Visitor, principal: Principal) -> str:
    task, _ = create_task(principal=principal, message="Sign in and tell me my number.")
    visitor.open(f"/admin/runs/task/{task['taskId']}/change/")
    visitor.sees("[data-chat-live]:not([hidden])")
    return str(task["taskId"])


def click_at(visitor: Visitor, x: int, y: int) -> None:
    """Click on a place of the agent's page, in its own pixels."""
    box = visitor.do(visitor.page.locator("[data-live-picture]").bounding_box())
    left, top = box["x"] + x * box["width"] / 1280, box["y"] + y * box["height"] / 720
    visitor.do(visitor.page.mouse.click(left, top))


def take_over(visitor: Visitor) -> None:
    visitor.click("button:has-text('Take over')")
    visitor.sees("[data-status-now=takeover] [data-live-bar]:not([hidden])")
    visitor.sees("[data-live-screen][data-acts]")
    visitor.sees("[data-live-picture][src^='data:image/jpeg']")


def give_back(visitor: Visitor) -> None:
    visitor.click("button:has-text('Give back')")
    visitor.sees("[data-status-now=running]")


def check_told(task_id: str, came_to: str) -> None:
    """Make sure that what the person did is told, and what they typed is nowhere."""
    done = [one.data for one in TaskEvent.objects.filter(task_id=task_id, type="personActed")]
    assert sum(one.get("clicks", 0) for one in done) == 3
    assert sum(one.get("keys", 0) for one in done) >= len(SECRET)
    assert [url for one in done for url in one.get("navigations", [])] == [came_to]
    assert AuditEntry.objects.filter(action="task.page_used", resource_id=task_id).exists()
    audited = AuditEntry.objects.values_list("metadata")
    told = str([*TaskEvent.objects.values_list("data"), *audited])
    assert SECRET not in told
    assert "Åsa" not in told


def test_a_person_takes_the_page_over_signs_in_and_gives_it_back(
    visitor: Visitor, principal: Principal, agent_settings: Any, page_server: PageServer,
    model: ModelServer, model_that_signs_in: Signing, place: WorkerPlace, in_background: Background,  # noqa: F811
) -> None:  # fmt: skip
    task_id = begin(visitor, principal)
    working = in_background(place.work)
    visitor.sees("[data-live-picture][src^='data:image/jpeg']")  # while the agent works: to look at
    visitor.sees("[data-live-where]:not([hidden]) >> text=/form")
    show(visitor, "live-view-only")
    take_over(visitor)
    model.go_on.set()
    working.join(PATIENCE_S)
    click_at(visitor, 200, 120)
    visitor.do(visitor.page.keyboard.type("Åsa"))
    click_at(visitor, 200, 180)
    visitor.do(visitor.page.keyboard.type(SECRET))
    show(visitor, "live-typed")
    click_at(visitor, 200, 240)
    visitor.do(
        visitor.page.wait_for_function(
            "document.querySelector('[data-live-url]').value.includes('/inside?3-11')"
        )
    )
    show(visitor, "live-inside")
    run = Run.objects.get(task_id=task_id)
    assert run.waiting_for["type"] == "takeover"
    give_back(visitor)
    working = in_background(place.work)
    visitor.sees(".chat-said[data-role=assistant] >> text=Your number is 42")
    working.join(PATIENCE_S)
    run.refresh_from_db()
    assert run.status == "succeeded", run.error
    until(lambda: TaskEvent.objects.filter(task_id=task_id, type="personActed").exists())
    check_told(task_id, page_server.url("/inside"))


def test_dialogs_new_tabs_and_a_page_left_are_the_persons_to_see(
    visitor: Visitor, principal: Principal, agent_settings: Any, page_server: PageServer,
    model: ModelServer, model_that_signs_in: Signing, place: WorkerPlace,  # noqa: F811
    in_background: Background,  # noqa: F811
) -> None:  # fmt: skip
    task_id = begin(visitor, principal)
    working = in_background(place.work)
    visitor.sees("[data-live-picture][src^='data:image/jpeg']")
    take_over(visitor)
    model.go_on.set()
    working.join(PATIENCE_S)
    click_at(visitor, 200, 300)
    visitor.sees("[data-live-dialog]:not([hidden]) >> text=Sure?")
    show(visitor, "live-dialog")
    visitor.click("[data-live-yes]")
    visitor.do(visitor.page.wait_for_selector("[data-live-dialog]", state="hidden"))
    click_at(visitor, 60, 350)
    visitor.sees("[data-live-tab]:not([hidden]) >> text=/other")
    visitor.click("[data-live-tab-go]")
    at = "document.querySelector('[data-live-url]').value.endsWith"
    visitor.do(visitor.page.wait_for_function(f"{at}('/other')"))
    visitor.fill("[data-live-url]", page_server.url("/inside"))
    visitor.do(visitor.page.press("[data-live-url]", "Enter"))
    visitor.do(visitor.page.wait_for_function(f"{at}('/inside')"))
    give_back(visitor)
    working = in_background(place.work)
    visitor.sees(".chat-said[data-role=assistant] >> text=Your number is 42")
    working.join(PATIENCE_S)
    held = next(one for one in model_that_signs_in.told if not one["ok"])
    assert held["error"]["code"] == "PERSON_HAD_PAGE"  # it was meant for the page as it was
    assert "Your number is 42" in str(held["page"])
    assert Task.objects.get(id=task_id).status == "ongoing"
