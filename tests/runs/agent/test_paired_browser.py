"""An agent in a paired browser: the same actions, results and observation as in the worker's
browser, and none of the worker's browser is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from artifacts.models import Artifact
from decisions.authorization.confirmations import refuse
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import TargetNotFound
from decisions.identity.principals import Principal
from runners.models import PluginClient
from runners.paired_browser.dispatch import SentAction
from runners.paired_browser.errors import BrowserOffline
from runs.conversations.services import create_task
from runs.live.paired_browser import resume_from_browser, take_over_from_browser
from runs.models import Run, Task, TaskOrigin
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import SubmitGoal, execute_run, observations, tool_results
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.paired_browser import SHOP, TAB, ScriptedBrowser, failed, pair
from tests.support.decisions.confirmations import answer_confirmation

OPEN = Turn("", [Call("task_start", {"url": SHOP}, "open")])
Submit = Callable[..., Run]


@pytest.fixture
def start(principal: Principal, agent_settings: Any, project: Any) -> Submit:
    """Create a task in the paired browser, and return its run."""

    def make(**more: Any) -> Run:
        create_task(principal=principal, message="Buy tea.", **{"target_id": "plugin", **more})
        return Run.objects.latest("created_at")

    return make


def act(name: str, **args: Any) -> Turn:
    """Return a turn with one action in the tab."""
    return Turn("", [Call(name, {"tabId": TAB, **args}, f"{name}{args}")])


def test_an_agent_reads_the_page_in_the_persons_paired_browser(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess, browser: ScriptedBrowser
) -> None:
    model.script = [OPEN, complete()]
    run = execute_run(submit_goal(targetId="plugin"), worker)
    assert (run.status, run.error) == ("succeeded", None)
    assert run.inputs["selectedClientId"] == browser.client_id
    (opened,) = tool_results(model.requests[1])
    assert opened["result"]["tabId"] == TAB
    assert opened["page"]["url"] == SHOP
    (seen,) = observations(model.requests[1])
    assert "Buy" in seen["text"]
    assert browser.names == [
        "task_start",
        "browser_wait_for_loaded",
        "browser_screenshot",
        "browser_readability_extract",
        "browser_observe",
    ]
    picture = Artifact.objects.get(kind="screenshot")
    assert (picture.run_id, picture.name, picture.size_bytes) == (run.id, "screenshot.jpg", 12)


def test_the_first_change_on_an_origin_waits_for_a_person_and_further_ones_do_not(
    model: ModelServer, start: Submit, worker: WorkerProcess, browser: ScriptedBrowser
) -> None:
    model.script = [OPEN, act("browser_click", clickId=2), act("browser_click", clickId=1)]
    model.script.append(complete())
    run = execute_run(start().id, worker)
    assert "[2] button" in run.waiting_for["question"]
    assert SHOP in run.waiting_for["question"]
    assert "browser_click" not in browser.names
    answer_confirmation(run)
    assert execute_run(run.id, worker).status == "succeeded"
    assert browser.names.count("browser_click") == 2


def test_a_change_goes_to_the_browser_with_the_origin_that_was_judged(
    model: ModelServer, start: Submit, worker: WorkerProcess, browser: ScriptedBrowser
) -> None:
    model.script = [OPEN, act("browser_type", clickId=4, text="Ada"), complete()]
    answer_confirmation(execute_run(start().id, worker))
    execute_run(Run.objects.get().id, worker)
    bound = {action.expected_origin for action in browser.sent if action.name == "browser_type"}
    assert bound == {"https://shop.example"}


@pytest.mark.parametrize(
    "asked",
    [
        act("browser_click", clickId=3),
        act("browser_click", xpath="//button"),
        act("browser_type", clickId=4, text="Ada", submit=True),
        act("browser_press_key", key="Enter"),
        act("browser_click", clickId=2, dialog={"accept": True}),
        act("browser_drag", clickId=3, dx=1),
        act("browser_drag", xpath="//button", dx=1),
    ],
    ids=["submit", "unseen", "type", "enter", "dialog", "drag", "drag unseen"],
)
def test_a_submit_is_asked_each_time(
    model: ModelServer,
    start: Submit,
    worker: WorkerProcess,
    browser: ScriptedBrowser,
    asked: Turn,
) -> None:
    run = start()
    TaskOrigin.objects.create(
        task_id=str(run.task_id), origin="https://shop.example", decision_id=1, at=run.created_at
    )
    model.script = [OPEN, asked, complete()]
    assert execute_run(run.id, worker).waiting_for["type"] == "confirmation"
    answer_confirmation(run, refuse)
    assert execute_run(run.id, worker).status == "succeeded"
    assert asked.calls[0].name not in browser.names
    assert tool_results(model.requests[2])[1]["error"]["code"] == "POLICY_DENIED"


def test_a_confirmation_is_for_the_page_that_was_shown(
    model: ModelServer, start: Submit, worker: WorkerProcess, browser: ScriptedBrowser
) -> None:
    model.script = [OPEN, act("browser_click", clickId=2), complete()]
    run = execute_run(start().id, worker)
    bank = "https://bank.example/"
    browser.replies["browser_judge"] = lambda action: browser.judged(action, page=bank)
    answer_confirmation(run)
    asked_again = execute_run(run.id, worker)
    assert "bank.example" in asked_again.waiting_for["question"]
    assert "browser_click" not in browser.names


@pytest.mark.parametrize(("target", "asks"), [("", True), ("plugin", False)])
def test_a_rule_that_allows_counts_if_it_names_the_paired_browser(
    model: ModelServer,
    start: Submit,
    worker: WorkerProcess,
    browser: ScriptedBrowser,
    target: str,
    asks: bool,
) -> None:
    fields = RuleFields("allow", tool="browser_click", target_id=target, reason="test")
    create_rule(fields, actor="t")
    model.script = [OPEN, act("browser_click", clickId=3), complete()]
    run = execute_run(start().id, worker)
    assert (run.waiting_for is not None, "browser_click" in browser.names) == (asks, not asks)


def test_a_takeover_stops_the_agent_and_its_end_is_observed_first(
    model: ModelServer,
    start: Submit,
    worker: WorkerProcess,
    browser: ScriptedBrowser,
    principal: Principal,
) -> None:
    def take_over(action: SentAction) -> dict[str, Any]:
        take_over_from_browser(
            principal=principal,
            client_id=browser.client_id,
            task_id=action.task_id,
            reason="input",
            counts={"clicks": 2},
        )
        return {"moved": True, "screen": "screen 2 of 2", "atEnd": True}

    browser.replies["browser_scroll"] = take_over
    scroll = Call("browser_scroll", {"tabId": TAB, "screens": 1}, "scroll")
    index = Call("browser_dom_index", {"tabId": TAB}, "index")
    model.script = [OPEN, Turn("", [scroll, index]), complete()]
    run = execute_run(start().id, worker)
    assert (run.waiting_for["type"], browser.names[-1]) == ("takeover", "browser_scroll")
    task = Task.objects.get()
    acted = task.events.get(type="personActed").data
    assert (task.status, acted) == ("takeover", {"by": principal.id, "clicks": 2})
    resume_from_browser(principal=principal, client_id=browser.client_id, task_id=task.id)
    assert execute_run(run.id, worker).status == "succeeded"
    assert "browser_observe" in browser.names[browser.names.index("browser_scroll") :]


def test_an_action_that_the_transport_sent_again_is_not_retried_but_reported(
    model: ModelServer, start: Submit, worker: WorkerProcess, browser: ScriptedBrowser
) -> None:
    browser.replies["task_start"] = BrowserOffline("This browser is not connected.")
    model.script = [OPEN, complete()]
    execute_run(start().id, worker)
    error = tool_results(model.requests[1])[0]["error"]
    assert (error["code"], error["retryable"]) == ("PLUGIN_OFFLINE", True)
    assert browser.names == ["task_start"]


def test_a_closed_tab_is_opened_again_once(
    model: ModelServer, start: Submit, worker: WorkerProcess, browser: ScriptedBrowser
) -> None:
    browser.replies["browser_scroll"] = failed("TASK_TAB_CLOSED")
    model.script = [OPEN, act("browser_scroll", screens=1), complete()]
    execute_run(start().id, worker)
    result = tool_results(model.requests[2])[1]
    assert result["error"]["code"] == "TASK_TAB_CLOSED"
    assert (result["newTab"]["tabId"], browser.names.count("task_start")) == (TAB, 2)
    assert browser.names[-1] == "browser_observe"


def test_another_callers_browser_is_never_used(
    principal: Principal, start: Submit, worker: WorkerProcess, browser: ScriptedBrowser
) -> None:
    other = pair(replace(principal, id="token:tok_other"))
    with pytest.raises(TargetNotFound):
        start(selected_client_id=other.id, target_id=None)
    assert not Task.objects.exists()


def test_a_run_that_names_another_callers_browser_gets_none(
    model: ModelServer,
    principal: Principal,
    start: Submit,
    worker: WorkerProcess,
    browser: ScriptedBrowser,
) -> None:
    other = pair(replace(principal, id="token:tok_other"))
    model.script = [OPEN, complete()]
    run = start()
    run.inputs["selectedClientId"] = other.id
    run.save()
    execute_run(run.id, worker)
    assert tool_results(model.requests[1])[0]["error"]["code"] == "TARGET_NOT_FOUND"
    assert not browser.sent


def test_a_browser_that_was_revoked_meanwhile_is_not_used(
    model: ModelServer, start: Submit, worker: WorkerProcess, browser: ScriptedBrowser
) -> None:
    model.script = [OPEN, complete()]
    run = start()
    PluginClient.objects.update(revoked_at=run.created_at)
    execute_run(run.id, worker)
    assert tool_results(model.requests[1])[0]["error"]["code"] == "TARGET_NOT_FOUND"
    assert not browser.sent


def test_a_change_is_asked_on_the_origin_that_the_tab_shows_by_now(
    model: ModelServer,
    start: Submit,
    worker: WorkerProcess,
    browser: ScriptedBrowser,
) -> None:
    run = start()
    TaskOrigin.objects.create(
        task_id=str(run.task_id), origin="https://shop.example", decision_id=1, at=run.created_at
    )
    bank = "https://bank.example/"
    browser.replies["browser_judge"] = lambda action: browser.judged(action, page=bank)
    model.script = [OPEN, act("browser_type", clickId=4, text="Ada"), complete()]
    assert execute_run(run.id, worker).waiting_for["type"] == "confirmation"
    answer_confirmation(run)
    execute_run(run.id, worker)
    origins = TaskOrigin.objects.values_list("origin", flat=True)
    assert set(origins) == {"https://shop.example", "https://bank.example"}
