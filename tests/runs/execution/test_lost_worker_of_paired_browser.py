"""A worker is lost during an action in a paired browser: the action is not sent again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from decisions.identity.principals import Principal
from runners.paired_browser.dispatch import BrowserReply, SentAction
from runs.conversations.services import create_task
from runs.models import Run, TaskOrigin, Worker
from runs.queue.heartbeat import Heartbeat
from runs.queue.lease_expiry import end_leases_of_worker
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import execute_run, tool_results
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.paired_browser import SHOP, TAB, ScriptedBrowser
from tests.support.runs.waiting import wait_until

ORIGIN = "https://shop.example"
CLICKED = BrowserReply("success", {"clicked": True, "strategy": "cdp_mouse"})


@pytest.fixture
def lose_worker_at_click(
    principal: Principal,
    model: ModelServer,
    worker: WorkerProcess,
    browser: ScriptedBrowser,
    agent_settings: Any,
    project: Any,
) -> Callable[[BrowserReply | None], Run]:
    """Run an agent whose worker is lost during a click, of which the transport has kept this
    reply; return the run after another lease.
    """

    def end_leases() -> list[str]:
        return [
            run_id
            for row in Worker.objects.filter(lost_at__isnull=True)
            for run_id in end_leases_of_worker(row.id, beat=row.beat, reason="lost in a test")
        ]

    def do(kept: BrowserReply | None) -> Run:
        def lose(action: SentAction) -> BrowserReply:
            if kept is not None:
                browser.kept[action.action_id] = kept
            with pytest.MonkeyPatch.context() as patched:
                # A worker that finds itself marked lost releases its runs, which counts as no loss.
                patched.setattr(Heartbeat, "_register_anew", lambda _: None)
                wait_until(end_leases)  # a heartbeat in between keeps the worker
                Worker.objects.update(lost_at=None)
            return CLICKED

        browser.replies["browser_click"] = lose
        open_shop = Turn("", [Call("task_start", {"url": SHOP}, "open")])
        click = Turn("", [Call("browser_click", {"tabId": TAB, "clickId": 2}, "click")])
        model.script = [open_shop, click, complete()]
        create_task(principal=principal, message="Click.", target_id="plugin")
        run = Run.objects.get()
        TaskOrigin.objects.create(
            task_id=str(run.task_id),
            origin="https://shop.example",
            decision_id=1,
            at=run.created_at,
        )
        execute_run(run.id, worker)
        return execute_run(run.id, worker)

    return do


@pytest.mark.parametrize("kept", [CLICKED, None], ids=["answered", "unanswered"])
def test_the_next_worker_collects_the_answer_and_sends_nothing_again(
    lose_worker_at_click: Callable[[BrowserReply | None], Run],
    browser: ScriptedBrowser,
    model: ModelServer,
    kept: BrowserReply | None,
) -> None:
    run = lose_worker_at_click(kept)
    assert (run.status, run.times_lost) == ("succeeded", 1)
    assert browser.names.count("browser_click") == 1
    click = tool_results(model.requests[-1])[1]
    assert click["ok"] == (kept is not None)
    if kept is None:
        assert click["error"]["details"]["effect"] == "unknown"
