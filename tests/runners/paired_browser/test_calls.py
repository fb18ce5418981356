"""Test calls of actions in a paired browser: acknowledgment, result, and what becomes of both."""

from __future__ import annotations

from dataclasses import replace

import pytest

from decisions.models import AuditEntry
from runners.invocation.event_loop import get_loop
from runners.models import PluginClient
from runners.paired_browser import dispatch
from runners.paired_browser.dispatch import BrowserReply, collect_reply
from runners.paired_browser.errors import BrowserAckTimeout, BrowserExecTimeout, BrowserOffline
from tests.support.runners.protocol_browser import Message, ProtocolBrowser
from tests.support.runners.protocol_fixtures import PairBrowser, action_for, perform
from tests.support.runs.waiting import wait_until

CLICKED = {"clicked": True, "strategy": "cdp_mouse"}


@pytest.fixture(autouse=True)
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a third of a second where the product waits for seconds."""
    for name in ("ACK_S", "RESEND_S", "RECONNECT_S"):
        monkeypatch.setattr(dispatch, name, 0.3)


def browser_of(browser: ProtocolBrowser) -> PluginClient:
    return PluginClient.objects.get(id=browser.session["clientId"])


def ignored_results() -> list[str]:
    rows = AuditEntry.objects.filter(action="plugin.result_ignored").order_by("id")
    return [row.metadata["reason"] for row in rows]


def test_an_action_is_performed_and_its_result_returned(paired_browser: ProtocolBrowser) -> None:
    paired_browser.perform = lambda action: {"result": CLICKED, "warnings": ["slow"]}
    sent_for = action_for(paired_browser.session["clientId"])
    action = replace(sent_for, expected_origin="https://shop.example")
    assert perform(action) == BrowserReply("success", CLICKED, ("slow",))
    [sent] = paired_browser.actions
    assert sent["action"] == {"browser_click": {"tabId": 1, "clickId": 3}}
    assert (sent["id"], sent["attempt"], sent["timeoutMs"]) == (action.action_id, 1, 5000)
    assert sent["expectedOrigin"] == action.expected_origin
    assert browser_of(paired_browser).last_used_at is not None


def test_an_error_and_a_partial_result_are_returned_as_the_browser_reports_them(
    paired_browser: ProtocolBrowser,
) -> None:
    error = {"code": "TASK_TAB_CLOSED", "message": "The tab is closed.", "retryable": False}
    paired_browser.perform = lambda action: {"error": error}
    assert perform(action_for(paired_browser.session["clientId"])).error == error
    partial = {"status": "partial", "result": {}, "missing": ["screenshot"]}
    paired_browser.perform = lambda action: partial
    reply = perform(action_for(paired_browser.session["clientId"]))
    assert (reply.status, reply.missing) == ("partial", ("screenshot",))


def test_an_action_that_the_browser_refuses_ends_with_its_error(
    paired_browser: ProtocolBrowser,
) -> None:
    busy = {"code": "TASK_BUSY", "message": "Another action runs."}

    def refuse(action: Message) -> None:
        paired_browser.send({"v": 1, "type": "ack", "id": action["id"], "ok": False, "error": busy})

    paired_browser.acknowledge, paired_browser.perform = False, refuse
    assert perform(action_for(paired_browser.session["clientId"])) == BrowserReply(
        "error", error=busy
    )


def test_an_action_without_acknowledgment_is_sent_once_more_and_then_times_out(
    paired_browser: ProtocolBrowser,
) -> None:
    paired_browser.acknowledge = False
    paired_browser.perform = lambda action: None
    with pytest.raises(BrowserAckTimeout) as failed:
        perform(action_for(paired_browser.session["clientId"]))
    assert failed.value.details["effect"] == "unknown"
    assert [sent["attempt"] for sent in paired_browser.actions] == [1, 2]
    assert len({sent["actionId"] for sent in paired_browser.actions}) == 1


def test_an_action_without_result_times_out_and_its_late_result_is_ignored(
    paired_browser: ProtocolBrowser,
) -> None:
    paired_browser.perform = lambda action: None
    action = action_for(paired_browser.session["clientId"], timeout_ms=300)
    with pytest.raises(BrowserExecTimeout):
        perform(action)
    [sent] = paired_browser.actions
    assert paired_browser.send_result(sent, result=CLICKED)["ok"]
    assert ignored_results() == ["late"]
    assert get_loop().submit(collect_reply(action.action_id, wait_s=0)).result(10) is None


def test_a_browser_is_unhealthy_after_two_timeouts_in_a_row_until_it_answers(
    paired_browser: ProtocolBrowser,
) -> None:
    paired_browser.perform = lambda action: None
    for _ in range(2):
        with pytest.raises(BrowserExecTimeout):
            perform(action_for(paired_browser.session["clientId"], timeout_ms=100))
    assert browser_of(paired_browser).timeouts == 2
    paired_browser.perform = lambda action: {"result": CLICKED}
    perform(action_for(paired_browser.session["clientId"]))
    assert browser_of(paired_browser).timeouts == 0


def test_the_first_of_two_results_counts(paired_browser: ProtocolBrowser) -> None:
    paired_browser.perform = lambda action: {"result": CLICKED}
    action = action_for(paired_browser.session["clientId"])
    reply = perform(action)
    [sent] = paired_browser.actions
    assert paired_browser.send_result(sent, result={"clicked": False})["ok"]
    assert ignored_results() == ["duplicate"]
    assert perform(action) == reply
    assert len(paired_browser.actions) == 1


def test_a_result_about_another_tab_than_the_actions_is_refused(
    paired_browser: ProtocolBrowser,
) -> None:
    paired_browser.perform = lambda action: {"result": CLICKED, "tabId": 99}
    reply = perform(action_for(paired_browser.session["clientId"]))
    assert reply.error is not None
    assert reply.error["code"] == "INVALID_TASK_TAB"


def test_a_result_of_an_unknown_action_is_ignored(paired_browser: ProtocolBrowser) -> None:
    unknown = {"actionId": "act_x", "taskId": "task_1"}
    assert paired_browser.send_result(unknown, result={})["ok"]
    assert ignored_results() == ["unknown"]


def test_a_browser_cannot_answer_for_another_one(pair: PairBrowser) -> None:
    asked, other = pair(), pair()
    asked.perform = lambda action: None
    action = action_for(asked.session["clientId"], timeout_ms=2000)
    waiting = get_loop().submit(dispatch.perform_in_browser(action))
    wait_until(lambda: asked.actions)
    assert other.send_result(asked.actions[0], result={"clicked": False})["ok"]
    assert ignored_results() == ["unknown"]
    asked.send_result(asked.actions[0], result=CLICKED)
    assert waiting.result(10).result == CLICKED


def test_an_action_for_a_browser_that_is_not_connected_is_refused(pair: PairBrowser) -> None:
    browser = pair()
    browser.connection.close()
    wait_until(lambda: browser_of(browser).connection_id is None)
    with pytest.raises(BrowserOffline) as failed:
        perform(action_for(browser.session["clientId"]))
    assert failed.value.details["effect"] == "none"


def test_another_worker_collects_the_result_of_an_action_that_was_sent_before(
    paired_browser: ProtocolBrowser,
) -> None:
    paired_browser.perform = lambda action: None
    action = action_for(paired_browser.session["clientId"], timeout_ms=20_000)
    lost = get_loop().submit(dispatch.perform_in_browser(action))
    wait_until(lambda: paired_browser.actions)
    lost.cancel()
    collecting = get_loop().submit(collect_reply(action.action_id, wait_s=10))
    paired_browser.send_result(paired_browser.actions[0], result=CLICKED)
    reply = collecting.result(20)
    assert reply is not None
    assert reply.result == CLICKED
