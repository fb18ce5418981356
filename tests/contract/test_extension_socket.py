"""Test the WebSocket of paired browsers: who may connect, what closes it, what it answers.

The rows of `ws:plugin` of the bad inputs are here, in tests/runners/paired_browser/test_calls.py
and, those of a page's text, in test_paired_browser.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
import pytest
from django.conf import settings as django_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidStatus

from decisions.audit.anonymous_events import write_counted_events
from decisions.identity.principals import Principal, authenticate, create_token
from decisions.models import AuditEntry, Token
from runners.models import PluginClient, PluginTicket
from runners.paired_browser.connections import hub
from runners.paired_browser.pairing.tickets import create_ticket
from runners.paired_browser.protocol import messages
from runners.paired_browser.protocol.flood import PendingConnections
from runs.models import Task
from runs.websockets import extension
from tests.services import free_port
from tests.support.rest.rest import json_of, refusal
from tests.support.runners.protocol_browser import (
    ABOUT,
    Message,
    ProtocolBrowser,
    open_browser,
    tab,
)
from tests.support.runners.protocol_fixtures import PairBrowser
from tests.support.runs.waiting import wait_until

MakeClient = Callable[..., httpx.Client]


def activation(**credential: Any) -> Message:
    return {"v": 1, "type": "activate_extension", "id": "a", **ABOUT, **credential}


def code_after(web: str, *frames: Any) -> int | None:
    """Return the code with which the server closes a connection after these frames."""
    with open_browser(web) as browser:
        with suppress(ConnectionClosed):  # the server may close it before it reads all
            for frame in frames:
                browser.send(frame)
        return browser.close_code()


def browser_of(browser: ProtocolBrowser) -> PluginClient:
    return PluginClient.objects.get(id=browser.session["clientId"])


def reconnect(web: str, session: Message, **credential: Any) -> int | None:
    """Connect with a session's secret; return None if that is accepted, else the close code."""
    secret = {"clientId": session["clientId"], "secret": session["secret"], **credential}
    with open_browser(web) as browser:
        browser.send(activation(**secret))
        wait_until(lambda: not browser.acks.empty() or browser.has_ended)
        if browser.acks.empty():
            return browser.close_code()
        session["renewed"] = browser.acks.get()["result"]["secret"]
        return None


# --- who may connect ------------------------------------------------------------------------------


def test_a_page_of_another_origin_is_refused_before_the_handshake(web: str) -> None:
    for origin in ("https://evil.test", web, "chrome-extension://aaaabbbbccccddddeeeeffffgggghhhh"):
        with pytest.raises(InvalidStatus) as refused, open_browser(web, origin=origin):
            pass
        assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    "first",
    [
        {"v": 1, "type": "ping", "id": "p"},
        activation(),
        activation(ticket="plt_made_up"),
        activation(ticket="cty_" + "x" * 43),
        activation(clientId="plc_unknown", secret="pls_1_x_y"),
        activation(clientId="plc_unknown"),
        {**activation(ticket="plt_x"), "extra": 1},
        "not json",
        "[]",
    ],
    ids=[
        "ping",
        "nothing",
        "ticket",
        "token",
        "client",
        "no secret",
        "extra field",
        "text",
        "list",
    ],
)
def test_without_a_valid_credential_the_connection_is_closed(
    web: str, principal: Principal, first: Any
) -> None:
    is_unknown_browser = isinstance(first, dict) and {"clientId", "secret"} <= first.keys()
    assert code_after(web, first) == (4410 if is_unknown_browser else 4401)


def test_a_browser_that_sends_nothing_is_disconnected(
    web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension, "AUTH_S", 0.1)
    assert code_after(web) == 4401


def test_a_large_first_message_closes_the_connection(web: str) -> None:
    assert code_after(web, activation(ticket="plt_x", clientId="x" * 8192)) == 1009


def test_a_first_message_of_another_type_is_not_validated(
    web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "read_message", lambda text: pytest.fail("validated"))
    assert code_after(web, {"v": 1, "type": "full_state_sync", "id": "s", "state": {}}) == 4401


def test_too_many_connections_without_a_credential_are_refused(
    web: str, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension, "_pending", PendingConnections(most=1, per_peer=1))
    with open_browser(web) as first:
        wait_until(lambda: extension._pending.total == 1)
        assert code_after(web) == 4429
        first.send(activation())
        assert first.close_code() == 4401
    with open_browser(web) as browser:
        browser.activate(ticket=create_ticket(principal=principal)["ticket"])
        assert extension._pending.total == 0


def test_a_ticket_is_not_used_up_while_there_is_no_room(
    web: str, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = create_ticket(principal=principal)["ticket"]
    monkeypatch.setattr(extension, "SOCKETS_MAX", 0)
    assert code_after(web, activation(ticket=ticket)) == 4429
    assert PluginTicket.objects.exists()


def test_a_ticket_is_not_used_up_while_redis_is_unavailable(
    web: str, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticket = create_ticket(principal=principal)["ticket"]
    monkeypatch.setattr(hub, "SUBSCRIBE_S", 0.3)
    with monkeypatch.context() as outage:
        outage.setattr(django_settings, "REDIS_URL", f"redis://127.0.0.1:{free_port()}/0")
        assert code_after(web, activation(ticket=ticket)) == 1001
    assert not PluginClient.objects.exists()
    with open_browser(web) as browser:
        browser.activate(ticket=ticket)
        assert browser.request("ping")["type"] == "pong"


def test_a_program_without_an_origin_may_connect_with_a_ticket(
    web: str, principal: Principal
) -> None:
    with open_browser(web, origin=None) as browser:
        browser.activate(ticket=create_ticket(principal=principal)["ticket"])


def test_a_ticket_pairs_one_browser(web: str, principal: Principal) -> None:
    ticket = create_ticket(principal=principal, name="Laptop")["ticket"]
    with open_browser(web) as browser:
        session = browser.activate(ticket=ticket)
    assert (session["name"], session["principal"]) == ("Laptop", "local")
    assert session["ownOrigins"][0] == web
    assert code_after(web, activation(ticket=ticket)) == 4401
    assert PluginClient.objects.count() == 1
    assert not PluginTicket.objects.exists()
    paired = AuditEntry.objects.get(action="plugin.paired")
    assert (paired.actor, paired.metadata["name"]) == ("local", "Laptop")


def test_an_expired_ticket_and_one_of_a_revoked_token_are_refused(
    web: str, principal: Principal
) -> None:
    expired = create_ticket(principal=principal)["ticket"]
    PluginTicket.objects.update(expires_at="2020-01-01T00:00:00Z")
    assert code_after(web, activation(ticket=expired)) == 4401
    revoked = create_ticket(principal=authenticate(create_token(name="t")))["ticket"]
    Token.objects.update(revoked_at="2026-01-01T00:00:00Z")
    assert code_after(web, activation(ticket=revoked)) == 4401


def test_a_guessed_credential_is_recorded_without_the_guess(web: str, principal: Principal) -> None:
    code_after(web, activation(ticket="plt_guessed"))
    write_counted_events(unfinished=True)
    [row] = AuditEntry.objects.filter(action="access.refused")
    assert row.resource_id == "/ws/plugin"
    assert "guessed" not in str(row.metadata)


def test_only_digests_of_tickets_and_secrets_are_stored(
    paired_browser: ProtocolBrowser, principal: Principal
) -> None:
    ticket = create_ticket(principal=principal)["ticket"]
    stored = str([*PluginClient.objects.values(), *PluginTicket.objects.values()])
    audited = str(list(AuditEntry.objects.values()))
    for secret in (ticket, paired_browser.session["secret"]):
        assert secret not in stored + audited


@pytest.fixture
def any_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept any number of connections within a second."""
    monkeypatch.setattr(extension._connections, "take", lambda client_id: True)


# --- the reconnect secret -------------------------------------------------------------------------


def test_each_connection_gets_a_new_secret(web: str, pair: PairBrowser, any_rate: None) -> None:
    session = pair().session
    assert reconnect(web, session) is None
    assert session["renewed"] != session["secret"]
    assert reconnect(web, session, secret=session["renewed"]) is None


def test_the_previous_secret_is_valid_while_the_newest_may_not_have_arrived(
    web: str, pair: PairBrowser, any_rate: None
) -> None:
    session = pair().session
    for _ in range(3):  # each time without a message after the activation
        assert reconnect(web, session) is None


def test_a_secret_that_was_used_before_revokes_the_browser(web: str, pair: PairBrowser) -> None:
    browser = pair()
    first = dict(browser.session)
    with open_browser(web) as again:
        secret = {name: first[name] for name in ("clientId", "secret")}
        renewed = dict(again.activate(**secret))
        assert again.request("ping")["type"] == "pong"  # the newest secret has arrived
        assert code_after(web, activation(**secret)) == 4410
        assert again.close_code() == 4410
    assert reconnect(web, renewed) == 4410
    [row] = AuditEntry.objects.filter(action="plugin.revoked")
    assert row.metadata["reason"] == "secret_reused"


def test_a_guessed_secret_does_not_revoke_the_browser(web: str, pair: PairBrowser) -> None:
    session = pair().session
    number, chance, origin = session["secret"].removeprefix("pls_").partition("_")[0], "x" * 43, "0"
    for guess in ("x", f"pls_{number}_{chance}_{origin * 64}", session["secret"][:-1] + "g"):
        assert code_after(web, activation(clientId=session["clientId"], secret=guess)) == 4410
    assert reconnect(web, session) is None


def test_a_newer_connection_replaces_the_older_one(web: str, pair: PairBrowser) -> None:
    browser = pair()
    assert reconnect(web, browser.session) is None
    assert browser.close_code() == 4409


def test_the_third_connection_within_a_second_is_refused(web: str, pair: PairBrowser) -> None:
    session = pair().session
    codes = [reconnect(web, session) for _ in range(3)]
    assert 4429 in codes


def test_a_browser_is_disconnected_when_the_token_that_paired_it_is_revoked(
    pair: PairBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "KEEP_S", 0.05)
    browser = pair(authenticate(create_token(name="t")))
    Token.objects.update(revoked_at="2026-01-01T00:00:00Z")
    assert browser.close_code() == 4410


# --- what closes the connection -------------------------------------------------------------------


def test_binary_a_large_frame_and_a_flood_close_the_connection(pair: PairBrowser) -> None:
    binary, large, flood = pair(), pair(), pair()
    binary.send(b"{}")
    assert binary.close_code() == 1003
    large.send("x" * (1024 * 1024 + 1))
    assert large.close_code() == 1009
    with suppress(ConnectionClosed):
        for _ in range(5000):
            flood.send({"v": 1, "type": "ping"})
    assert flood.close_code() == 4429


# --- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        "{",
        "[]",
        '{"v":1}',
        {"v": 2, "type": "ping", "id": "x"},
        {"v": 1, "type": "pong", "id": "x", "extra": True},
        {"v": 1, "type": "hello", "id": "x"},
        {"v": 1, "type": ["ping"], "id": "x"},
        {"v": 1, "type": "full_state_sync", "id": "x", "seq": 0, "state": {}},
        {"v": 1, "type": "tab_event", "id": "x", "seq": 1, "event": {"kind": "exploded"}},
        {"v": 1, "type": "tab_event", "id": "x", "seq": 1, "event": {"kind": "removed"}},
        {
            "v": 1,
            "type": "browser_action_result",
            "id": "x",
            "actionId": "a",
            "taskId": "t",
            "status": "error",
        },
        {"v": 1, "type": "takeover", "id": "x", "taskId": "t", "reason": "boredom"},
        {"v": 1, "type": "activity", "id": "x", "taskId": "t", "counts": {"keystrokes": 3}},
        activation(ticket="plt_x"),
    ],
    ids=lambda message: json.dumps(message)[:60],
)
def test_a_malformed_message_is_answered_and_the_connection_stays_open(
    paired_browser: ProtocolBrowser, message: Any
) -> None:
    paired_browser.send(message)
    answer = paired_browser.acks.get(timeout=5)
    assert (answer["ok"], answer["error"]["code"]) == (False, "BAD_REQUEST")
    assert answer.get("id") == (message.get("id") if isinstance(message, dict) else None)
    assert paired_browser.request("ping")["type"] == "pong"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_NAMES = st.sampled_from(["v", "id", "seq", "state", "event", "taskId", "actionId", "ok", "status"])
_MESSAGES = st.fixed_dictionaries(
    {"v": st.just(1), "type": st.sampled_from(sorted(messages.FROM_BROWSER)), "id": st.just("fuzz")}
)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(head=_MESSAGES, fields=st.dictionaries(_NAMES, _JSON, max_size=4))
def test_any_message_is_answered_or_ignored(
    paired_browser: ProtocolBrowser, head: Message, fields: Message
) -> None:
    paired_browser.send({**fields, **head})
    assert paired_browser.request("ping")["type"] == "pong"


def test_a_text_of_262143_bytes_fits_in_a_result(paired_browser: ProtocolBrowser) -> None:
    unknown = {"actionId": "act_x", "taskId": "task_1"}
    text = {"text": "a" * 262_143, "contentLengthBytes": 262_143}
    assert paired_browser.send_result(unknown, result=text)["ok"]


@pytest.mark.parametrize(
    ("type_", "fields"),
    [
        ("takeover", {"reason": "input"}),
        ("resume", {}),
        ("stop", {}),
        ("activity", {"counts": {"clicks": 1}}),
    ],
)
def test_a_browser_has_no_power_over_a_task_that_does_not_work_in_it(
    paired_browser: ProtocolBrowser, type_: str, fields: Message
) -> None:
    answer = paired_browser.request(type_, taskId="task_another", **fields)
    assert answer["error"]["code"] == "NOT_FOUND"


# --- what it has open -----------------------------------------------------------------------------


def snapshot_of(api: httpx.Client, client_id: str) -> dict[str, Any]:
    return json_of(api.get(f"/api/v1/plugin/clients/{client_id}/snapshot"))


def test_the_snapshot_follows_the_browser(
    web: str, client_with: MakeClient, pair: PairBrowser
) -> None:
    api = client_with()
    owner = authenticate(api.headers["Authorization"].removeprefix("Bearer "))
    browser = pair(owner)
    client_id = browser.session["clientId"]
    assert snapshot_of(api, client_id)["state"] is None
    title = "<img src=x onerror=alert(1)>"
    assert browser.sync(tabs=[tab(1, title=title), tab(2, index=1)])["ok"]
    wait_until(lambda: snapshot_of(api, client_id)["state"])
    shown = snapshot_of(api, client_id)
    assert (shown["connected"], shown["stale"]) == (True, False)
    assert [one["title"] for one in shown["state"]["tabs"]] == [title, "Tab 2"]
    assert browser.tab_event("removed", tabId=1) == {"v": 1, "type": "ack", "id": "m3", "ok": True}
    wait_until(lambda: len(snapshot_of(api, client_id)["state"]["tabs"]) == 1)
    assert snapshot_of(api, client_id)["seq"] > shown["seq"]
    browser.connection.close()
    wait_until(lambda: snapshot_of(api, client_id)["stale"])


def test_after_a_gap_the_browser_is_asked_for_its_complete_state(
    paired_browser: ProtocolBrowser,
) -> None:
    removed = {"kind": "removed", "tabId": 1}
    assert paired_browser.request("tab_event", seq=1, event=removed)["resync"] is True
    assert paired_browser.sync(tabs=[tab(1)])["ok"]
    assert paired_browser.request("tab_event", seq=5, event=removed)["resync"] is True


# --- REST -----------------------------------------------------------------------------------------


def test_a_caller_sees_and_removes_only_its_paired_browsers(
    web: str, client_with: MakeClient
) -> None:
    mine, other = client_with(), client_with()
    ticket = json_of(mine.post("/api/v1/plugin/ticket", json={"name": "Laptop"}), 201)["ticket"]
    with open_browser(web) as browser:
        client_id = browser.activate(ticket=ticket)["clientId"]
        one = f"/api/v1/plugin/clients/{client_id}"
        [listed] = json_of(mine.get("/api/v1/plugin/clients"))["clients"]
        assert (listed["name"], listed["connected"], listed["healthy"]) == ("Laptop", True, True)
        [candidate] = json_of(mine.get("/api/v1/extension/extension-list"))["extensions"]
        assert candidate["clientId"] == client_id
        assert json_of(other.get("/api/v1/plugin/clients"))["total"] == 0
        assert json_of(other.get("/api/v1/extension/extension-list"))["extensions"] == []
        for response in (other.get(one), other.get(f"{one}/snapshot"), other.delete(one)):
            assert refusal(response, 404)["errorCode"] == "PLUGIN_CLIENT_NOT_FOUND"
        assert json_of(mine.delete(one))["revoked"] is True
        assert browser.close_code() == 4410
    assert refusal(mine.get(one), 404)["errorCode"] == "PLUGIN_CLIENT_NOT_FOUND"


# --- its tasks ------------------------------------------------------------------------------------


def test_another_browser_of_the_same_person_has_no_power_over_the_task(
    pair: PairBrowser, make_task: Callable[..., str]
) -> None:
    task_id = make_task()
    chosen, other = pair(), pair()
    Task.objects.filter(id=task_id).update(
        selected_client_id=chosen.session["clientId"], status="ongoing"
    )
    answer = other.request("takeover", taskId=task_id, reason="button")
    assert answer["error"]["code"] == "NOT_FOUND"


def test_a_browser_that_connects_receives_its_tasks(
    web: str, pair: PairBrowser, make_task: Callable[..., str]
) -> None:
    browser, task_id = pair(), make_task(title="Buy milk")
    Task.objects.filter(id=task_id).update(
        selected_client_id=browser.session["clientId"], status="ongoing"
    )
    with open_browser(web) as again:
        secret = {name: browser.session[name] for name in ("clientId", "secret")}
        [task] = again.activate(**secret)["tasks"]
    assert (task["taskId"], task["status"], task["title"]) == (task_id, "ongoing", "Buy milk")
