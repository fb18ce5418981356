"""A batch of pages that is read in a browser that the caller paired."""

from __future__ import annotations

from typing import Any

import pytest

from decisions.foundation.errors import InvalidInput
from decisions.identity.principals import Principal
from runners.invocation import paired_tabs
from runners.paired_browser.dispatch import BrowserReply, SentAction
from runs.conversations.run_messages import message_of_run
from runs.conversations.services import take_over_task
from runs.models import Run, Task
from runs.submission.cancel import cancel_run
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import execute_run
from tests.support.browser.paired_browser import TAB, ScriptedBrowser, failed

URLS = ["https://shop.example/a", "https://shop.example/b"]


def read(principal: Principal, worker: WorkerProcess, **inputs: Any) -> Run:
    """Submit a batch as the APIs do, execute it and return its run."""
    given = {"urls": URLS, "targetId": "plugin", **inputs}
    message, complete = message_of_run(
        principal=principal, session_id=None, template_id="batch_extract_pages", inputs=given
    )
    submitted = submit_run(
        principal=principal,
        template_id="batch_extract_pages",
        inputs=complete,
        options={"mode": "async"},
        message=message,
    )
    return execute_run(submitted.run_id, worker)


def test_a_batch_is_read_in_one_tab_of_a_group_that_is_closed_at_the_end(
    principal: Principal, worker: WorkerProcess, browser: ScriptedBrowser
) -> None:
    run = read(principal, worker)
    assert (run.status, run.result["summary"]["succeeded"]) == ("succeeded", 2)
    first, second = run.result["items"]
    assert [one["url"] for one in (first, second)] == URLS
    section = {"heading": "Shop", "level": 1, "text": "Tea and coffee."}
    assert first["content"] == {"sections": [section], "truncated": False}
    assert first["pageInfo"]["elements"][0]["text"] == "Items"
    assert (first["httpStatus"], first["elementCount"], first["pageType"]) == (200, 4, "list")
    starts = [action.params for action in browser.sent if action.name == "task_start"]
    assert {one["groupTitle"] for one in starts} == {"Continuity: 2 pages"}
    assert all(one["reuseExistingTab"] for one in starts)
    assert (browser.names[-1], dict(browser.sent[-1].params)) == ("task_stop", {"closeTab": True})


def test_a_batch_in_the_paired_browser_has_a_task_to_stop_it_by(
    principal: Principal, worker: WorkerProcess, browser: ScriptedBrowser
) -> None:
    run = read(principal, worker)
    task = Task.objects.get()
    assert (run.task_id, task.selected_client_id) == (task.id, browser.client_id)
    assert task.title == f"Read {URLS[0]} and 1 more"
    assert {action.task_id for action in browser.sent} == {task.id}


def test_a_page_that_fails_does_not_end_the_batch(
    principal: Principal, worker: WorkerProcess, browser: ScriptedBrowser
) -> None:
    def start(action: SentAction) -> BrowserReply:
        if action.params["url"] == URLS[0]:
            return failed("NAVIGATION_TIMEOUT")
        page = {"tabId": TAB, "windowId": 1, "url": URLS[1]}
        return BrowserReply("success", page)

    browser.replies["task_start"] = start
    run = read(principal, worker, extract={"pageInfo": False})
    assert run.status == "partial_success"
    assert run.result["items"][0]["error"]["errorCode"] == "NAVIGATION_TIMEOUT"
    assert "browser_dom_index" not in browser.names


def test_a_batch_names_no_folder_as_its_browser(
    principal: Principal, worker: WorkerProcess, browser: ScriptedBrowser
) -> None:
    with pytest.raises(InvalidInput, match="targetId"):
        read(principal, worker, targetId="target_1")


@pytest.mark.parametrize("is_taken_over", [False, True], ids=["agent", "person"])
def test_a_canceled_batch_closes_its_tabs_unless_a_person_has_them(
    principal: Principal, worker: WorkerProcess, browser: ScriptedBrowser, is_taken_over: bool
) -> None:
    def start(action: SentAction) -> BrowserReply:
        if is_taken_over:
            take_over_task(principal=principal, task_id=action.task_id)
        cancel_run(principal=principal, run_id=Run.objects.get().id)
        return BrowserReply("success", {"tabId": TAB, "windowId": 1, "url": URLS[0]})

    browser.replies["task_start"] = start
    assert read(principal, worker).status == "canceled"
    assert ("task_stop" in browser.names) is not is_taken_over


def test_the_tabs_of_a_canceled_batch_are_closed_once_its_action_has_ended(
    principal: Principal,
    worker: WorkerProcess,
    browser: ScriptedBrowser,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paired_tabs, "POLL_S", 0.01)
    busy, stopped = failed("TASK_BUSY"), BrowserReply("success", {"stopped": True})
    answers = iter([busy, busy, stopped])

    def start(action: SentAction) -> BrowserReply:
        cancel_run(principal=principal, run_id=Run.objects.get().id)
        return BrowserReply("success", {"tabId": TAB, "windowId": 1, "url": URLS[0]})

    browser.replies |= {"task_start": start, "task_stop": lambda action: next(answers)}
    read(principal, worker)
    assert browser.names.count("task_stop") == 3
