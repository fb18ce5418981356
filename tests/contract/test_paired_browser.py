"""A task in a paired browser, over the browser's real socket: actions, results that are sent
by HTTP, the task's status, the state of the browser, and what the person does there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import create_token
from decisions.models import AuditEntry
from runners.actions.catalogue import READABILITY
from runners.actions.readability import TEXT_LIMIT_BYTES
from runners.paired_browser.dispatch import SentAction
from runs.models import Run, Task
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import tool_results
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.paired_browser import SHOP, TAB, ScriptedBrowser, failed
from tests.support.runners.protocol_browser import ProtocolBrowser, pair_browser, tab
from tests.support.runs.task_socket import open_task_socket

OPEN = Turn("", [Call("task_start", {"url": SHOP}, "open")])
Frames = list[dict[str, Any]]


@pytest.fixture
def scripted(api: httpx.Client, web: str, agent_settings: Any, project: Any) -> Any:
    """Connect a browser that the caller of `api` paired; yield it and what answers its actions."""
    ticket = api.post("/api/v1/plugin/ticket", json={}).json()["ticket"]
    with pair_browser(web, ticket) as browser:
        pages = ScriptedBrowser(browser.session["clientId"], web=web)
        browser.perform = pages.answer
        yield browser, pages


def start(api: httpx.Client, **fields: Any) -> dict[str, Any]:
    """Create a task in the caller's paired browser, and return it."""
    created = api.post("/api/v1/tasks", json={"message": "Look.", "targetId": "plugin", **fields})
    assert created.status_code == 201, created.text
    task: dict[str, Any] = created.json()
    return task


def statuses(browser: ProtocolBrowser) -> list[str]:
    """Return the task statuses that the browser was sent."""
    return [message["status"] for message in status_messages(browser)]


def status_messages(browser: ProtocolBrowser) -> Frames:
    """Return the messages about the status of a task that the browser was sent."""
    found = []
    while not browser.received.empty():
        found.append(browser.received.get())
    return [message for message in found if message["type"] == "task_status"]


def test_an_agent_works_in_the_browser_of_its_caller(
    model: ModelServer, api: httpx.Client, worker: WorkerProcess, scripted: Any
) -> None:
    browser, pages = scripted
    model.script = [OPEN, complete()]
    task = start(api)
    assert task["selectedClientId"] == pages.client_id
    worker.work()
    run = Run.objects.get()
    assert (run.status, run.error) == ("succeeded", None)
    (opened,) = tool_results(model.requests[1])
    artifact_id = opened["page"]["screenshot"]
    content = api.get(f"/api/v1/artifacts/{artifact_id}/content")
    assert (content.content, content.headers["Content-Type"]) == (pages.data, "image/jpeg")
    assert {one["taskTitle"] for one in browser.actions} == {"Look."}
    assert statuses(browser) == ["running", "ongoing"]


def test_the_browser_is_sent_what_its_task_waits_for(
    model: ModelServer, api: httpx.Client, worker: WorkerProcess, scripted: Any
) -> None:
    browser, _ = scripted
    model.script = [OPEN, Turn("", [Call("browser_click", {"tabId": TAB, "clickId": 3}, "buy")])]
    start(api)
    worker.work()
    running, ongoing = status_messages(browser)
    assert (ongoing["status"], "waitsFor" in running) == ("ongoing", False)
    assert ongoing["waitsFor"] == {
        "type": "confirmation",
        "act": "submit",
        "tool": "browser_click",
        "host": "shop.example",
        "element": 'button "Buy"',
    }


def test_a_text_of_exactly_2_mib_is_accepted(
    model: ModelServer, api: httpx.Client, worker: WorkerProcess, scripted: Any
) -> None:
    _, pages = scripted
    text = b"x" * TEXT_LIMIT_BYTES

    def answer(action: SentAction) -> Mapping[str, Any]:
        sent = asyncio.run(pages.upload(action, text, "text/markdown"))
        length = {"contentLengthBytes": len(text), "truncated": True}
        return {"title": "Shop", **length, "upload": sent}

    pages.replies["browser_readability_extract"] = answer
    model.script = [OPEN, Turn("", [Call(READABILITY.name, {"tabId": TAB}, "read")]), complete()]
    start(api)
    worker.work()
    (read,) = tool_results(model.requests[2])[-1:]
    whole = api.get(f"/api/v1/artifacts/{read['result']['artifactId']}/content")
    assert (read["ok"], whole.content) == (True, text)


def test_a_page_whose_text_cannot_be_read_is_used_with_its_screenshot(
    model: ModelServer, api: httpx.Client, worker: WorkerProcess, scripted: Any
) -> None:
    _, pages = scripted
    pages.replies["browser_readability_extract"] = failed("PAGE_PREP_FAILED")
    model.script = [OPEN, complete()]
    start(api)
    worker.work()
    page = tool_results(model.requests[1])[0]["page"]
    assert (page["missing"], "screenshot" in page) == (["readability"], True)
    assert "No readability of the page" in page["untrusted"]
    assert Run.objects.get().status == "succeeded"


def test_the_person_at_the_browser_takes_over_gives_back_and_stops(
    model: ModelServer, api: httpx.Client, worker: WorkerProcess, scripted: Any
) -> None:
    browser, pages = scripted
    task_id = start(api)["taskId"]
    taken = browser.request("takeover", taskId=task_id, reason="input", counts={"clicks": 1})
    assert taken["result"] == {"taskId": task_id, "status": "takeover"}
    assert browser.request("activity", taskId=task_id, counts={"keys": 3})["ok"]
    worker.work()
    assert not pages.sent
    assert browser.request("resume", taskId=task_id)["result"]["status"] == "running"
    assert browser.request("resume", taskId=task_id)["error"]["code"] == "CONFLICT"
    assert browser.request("stop", taskId=task_id)["result"]["status"] == "completed"
    assert Run.objects.get().status == "canceled"
    events = Task.objects.get().events.filter(type="personActed").order_by("seq")
    acted = [dict(one.data) for one in events]
    assert [{**one, "by": ""} for one in acted] == [{"by": "", "clicks": 1}, {"by": "", "keys": 3}]
    assert statuses(browser) == ["running", "takeover", "running", "completed"]
    used = AuditEntry.objects.filter(action="task.page_used").order_by("id")
    assert [row.metadata.get("keys", 0) for row in used] == [0, 3]


@pytest.mark.parametrize("verdict", ["deny", "confirm"])
def test_no_rule_keeps_the_person_from_the_page_in_their_browser(
    api: httpx.Client, scripted: Any, verdict: str
) -> None:
    browser, _ = scripted
    task_id = start(api)["taskId"]
    create_rule(RuleFields(verdict=verdict, tool="*", reason="A test."), actor="t")
    for type_, fields in [("takeover", {"reason": "input"}), ("resume", {}), ("stop", {})]:
        assert browser.request(type_, taskId=task_id, **fields)["ok"], type_
    assert api.post(f"/api/v1/tasks/{task_id}/stop").status_code != 200


def test_readers_of_the_task_follow_the_state_of_their_paired_browser(
    api: httpx.Client, web: str, token: str, scripted: Any
) -> None:
    browser, pages = scripted
    browser.sync(tabs=[tab(TAB)])
    task_id = start(api)["taskId"]
    other = create_token(name="other", trust="local")
    with (
        open_task_socket(web, task_id, token=token) as own,
        open_task_socket(web, task_id, token=other) as others,
    ):
        own.receive_until(lambda frame: _tabs_in(frame) == [TAB])
        browser.tab_event("created", tab=tab(TAB + 1))
        frames = own.receive_until(lambda frame: _tabs_in(frame) == [TAB, TAB + 1])
        assert frames[-1]["event"]["data"]["clientId"] == pages.client_id
        others.send({"v": 1, "type": "ping"})
        seen = others.receive_until(lambda frame: frame["type"] == "pong")
        browser.request("stop", taskId=task_id)
        seen += others.receive_until(lambda frame: "completed" in str(frame))
    assert not any(_tabs_in(frame) for frame in seen)


def _tabs_in(frame: dict[str, Any]) -> list[int]:
    """Return the ids of the tabs in the state of a browser; [] in any other frame."""
    data = frame.get("event", {}).get("data", {})
    return sorted(one["tabId"] for one in data.get("state", {}).get("tabs", []))


def test_a_request_for_the_paired_browser_without_one_is_refused(api: httpx.Client) -> None:
    refused = api.post("/api/v1/tasks", json={"message": "Look.", "targetId": "plugin"})
    assert (refused.status_code, refused.json()["errorCode"]) == (409, "PLUGIN_OFFLINE")
    unknown = api.post("/api/v1/tasks", json={"selectedClientId": "plc_1"})
    assert (unknown.status_code, unknown.json()["errorCode"]) == (404, "TARGET_NOT_FOUND")
    folder = api.post("/api/v1/tasks", json={"selectedClientId": "target_1"})
    assert (folder.status_code, folder.json()["errorCode"]) == (400, "INVALID_PARAMETER")
