"""Test the WebSocket of a live page: who may watch, who may act, what the worker receives."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from websockets.exceptions import ConnectionClosed

from decisions.foundation.security.keys import seal
from decisions.foundation.security.sealed_messages import MAX_AGE_S, Inbox, seal_message
from decisions.identity.principals import Principal, create_token
from decisions.models import Token
from runs.conversations.services import take_over_task
from runs.live.channel import WORKERS_CHANNEL, viewers_channel
from runs.streaming import credential_checks
from runs.websockets import live as websockets_live
from tests.support.rest.rest import json_of
from tests.support.runs.task_socket import Frame, TaskSocket, open_task_socket

Make = Callable[..., str]
TIMEOUT_S = 30.0
PING = {"type": "ping"}
CLICK = {"kind": "mouse", "action": "down", "x": 10, "y": 20, "button": "left", "clicks": 1}


class WorkerConnection:
    """The worker's end of the connection."""

    def __init__(self, client: Any, channel: Any) -> None:
        self.client, self.channel = client, channel
        self.inbox = Inbox(WORKERS_CHANNEL)

    def receive(self, kind: str) -> dict[str, Any]:
        """Return the next message of a type that is sent to workers."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            received = self.channel.get_message(ignore_subscribe_messages=True, timeout=1)
            message = self.inbox.open(received["data"]) if received else None
            if message is not None and message["kind"] == kind:
                return message
        raise AssertionError(f"no {kind} was received")

    def capture(self) -> bytes:
        """Return the next message of any channel as it is in Redis."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            received = self.channel.get_message(ignore_subscribe_messages=True, timeout=1)
            if received and received["channel"].decode() != WORKERS_CHANNEL:
                return bytes(received["data"])
        raise AssertionError("nothing was captured")

    def send(self, task_id: str, **message: Any) -> None:
        """Send a message to the viewers of a task."""
        channel = viewers_channel(task_id)
        self.client.publish(channel, seal_message(channel, message))


@contextmanager
def connect_worker() -> Iterator[WorkerConnection]:
    client: Any = redis.Redis.from_url(settings.REDIS_URL)
    channel = client.pubsub()
    channel.subscribe(WORKERS_CHANNEL)
    try:
        yield WorkerConnection(client, channel)
    finally:
        channel.close()
        client.close()


def open_live_page(web: str, task_id: str, **options: Any) -> Any:
    return open_task_socket(web, f"{task_id}/live", **options)


def send(task_socket: TaskSocket, *events: Any, **more: Any) -> Frame:
    task_socket.send({"v": 1, "type": "input", "id": "i1", "events": list(events), **more})
    return task_socket.receive_until(lambda frame: frame["type"] == "ack")[-1]


def is_last(frame: Frame) -> bool:
    return frame.get("message") == "last"


def test_frames_reach_the_viewer_and_input_reaches_the_worker(
    web: str, token: str, make_task: Make, principal: Principal
) -> None:
    task_id = make_task("say hi")
    take_over_task(principal=principal, task_id=task_id)
    with connect_worker() as worker, open_live_page(web, task_id, token=token) as task_socket:
        assert worker.receive("watch")["isNew"] is True
        worker.send(task_id, type="live_frame", data="AAAA", width=1280, height=720)
        frames = task_socket.receive_until(lambda frame: frame["type"] == "live_frame")
        assert frames[-1]["data"] == "AAAA"
        assert send(task_socket, CLICK, {"kind": "text", "text": "你好"})["ok"] is True
        passed = worker.receive("input")
    assert passed["taskId"] == task_id
    assert passed["by"].startswith("token:")
    assert passed["events"] == [CLICK, {"kind": "text", "text": "你好"}]


def test_no_input_is_forwarded_while_the_agent_controls_the_page(
    web: str, token: str, make_task: Make
) -> None:
    with open_live_page(web, make_task("say hi"), token=token) as task_socket:
        refused = send(task_socket, CLICK)
    assert (refused["ok"], refused["error"]["errorCode"]) == (False, "CONFLICT")


def test_two_viewers_watch_and_only_the_one_with_the_scope_acts(
    web: str, token: str, make_task: Make, principal: Principal
) -> None:
    task_id = make_task("say hi")
    take_over_task(principal=principal, task_id=task_id)
    reader = create_token(name="reader", scopes=frozenset({"tasks:read"}), trust="local")
    new = 0
    with (
        connect_worker() as worker,
        open_live_page(web, task_id, token=token) as controller,
        open_live_page(web, task_id, token=reader) as reader_socket,
    ):
        while (new := new + worker.receive("watch")["isNew"]) < 2:
            pass
        worker.send(task_id, type="live_frame", data="AAAA", width=1280, height=720)
        for task_socket in (controller, reader_socket):
            task_socket.receive_until(lambda frame: frame["type"] == "live_frame")
        assert send(reader_socket, CLICK)["error"]["errorCode"] == "FORBIDDEN"
        assert send(controller, CLICK)["ok"] is True
        assert worker.receive("input")["events"] == [CLICK]


def test_a_ticket_of_another_task_opens_no_live_page(
    web: str, token: str, api: httpx.Client, make_task: Make
) -> None:
    ticket = json_of(api.post(f"/api/v1/tasks/{make_task('say hi')}/ticket"))["ticket"]
    with open_live_page(web, make_task("say hi")) as task_socket:
        assert task_socket.request({"type": "auth", "ticket": ticket, "id": "a"})["ok"] is False
        assert task_socket.close_code() == 4401
    with open_live_page(web, "task_none", token=token) as task_socket:
        assert task_socket.close_code() == 4404


@pytest.mark.parametrize(
    "events",
    [
        [],
        [{}],
        [{"kind": "shell"}],
        [{**CLICK, "x": "1"}],
        [{**CLICK, "x": 1e9}],
        [{**CLICK, "action": "push"}],
        [{**CLICK, "more": 1}],
        [{"kind": "text", "text": ""}],
        [{"kind": "text", "text": "geheim" * 2000}],
        [{"kind": "text", "text": "geheim\0"}],
        [{"kind": "key", "action": "down", "key": "geheim" * 10}],
        [{"kind": "go"}],
        [CLICK] * 65,
    ],
)
def test_invalid_input_is_refused_without_repeating_the_typed_text(
    web: str, token: str, make_task: Make, principal: Principal, events: list[Any]
) -> None:
    task_id = make_task("say hi")
    take_over_task(principal=principal, task_id=task_id)
    with open_live_page(web, task_id, token=token) as task_socket:
        refused = send(task_socket, *events)
        assert refused["error"]["errorCode"] == "INVALID_PARAMETER"
        assert "geheim" not in str(refused)
        assert send(task_socket, CLICK)["ok"] is True


def test_the_viewer_gets_the_reason_why_no_page_is_open(
    web: str, token: str, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websockets_live, "PATIENCE_S", 0.5)
    with open_live_page(web, make_task("say hi"), token=token) as task_socket:
        frame = task_socket.receive()
    assert (frame["type"], frame["page"]) == ("live_state", False)
    assert frame["message"].startswith("No page is open")


def test_a_message_is_opened_once_on_its_own_channel_while_it_is_new() -> None:
    now = time.time()
    inbox = Inbox("a", clock=lambda: now)
    sealed = seal_message("a", {"type": "live_frame"})
    assert b"live_frame" not in sealed
    assert Inbox("b").open(sealed) is None
    assert inbox.open(b'{"type": "live_frame"}') is None
    assert inbox.open(seal(b'{"type": "live_frame"}', purpose="seal", bound_to="a")) is None
    assert inbox.open(sealed) == {"type": "live_frame"}
    assert inbox.open(sealed) is None
    assert inbox.open(sealed + b"=") is None
    late = seal_message("a", {"type": "live_frame"})
    now += MAX_AGE_S + 1
    assert [inbox.open(sealed), inbox.open(late)] == [None, None]


def test_a_viewer_whose_token_is_revoked_cannot_act(
    web: str, token: str, make_task: Make, principal: Principal
) -> None:
    task_id = make_task("say hi")
    take_over_task(principal=principal, task_id=task_id)
    with open_live_page(web, task_id, token=token) as task_socket:
        assert send(task_socket, CLICK)["ok"] is True
        Token.objects.update(revoked_at="2026-01-01T00:00:00Z")
        assert send(task_socket, CLICK)["error"]["errorCode"] == "UNAUTHENTICATED"


def test_a_viewer_whose_token_is_revoked_is_disconnected(
    web: str, token: str, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credential_checks, "CHECK_S", 0.0)
    with open_live_page(web, make_task("say hi"), token=token) as task_socket:
        assert task_socket.request(PING)["type"] == "pong"
        Token.objects.update(revoked_at="2026-01-01T00:00:00Z")
        with pytest.raises(ConnectionClosed):
            task_socket.receive()
        assert task_socket.close_code() == 4401


def test_the_number_of_viewers_is_limited(
    web: str, token: str, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websockets_live, "VIEWERS_MAX", 0)
    with open_live_page(web, make_task("say hi"), token=token) as task_socket:
        with pytest.raises(ConnectionClosed):
            task_socket.request(PING)
        assert task_socket.close_code() == websockets_live.TOO_MANY


def test_one_caller_cannot_take_the_live_pages_of_others(
    web: str, token: str, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websockets_live, "VIEWERS_OF_CALLER_MAX", 1)
    task_id = make_task("say hi")
    other = create_token(name="other", trust="local")
    with open_live_page(web, task_id, token=token) as first:
        first.request(PING)
        with open_live_page(web, task_id, token=token) as second:
            with pytest.raises(ConnectionClosed, match="you have 1 live pages open"):
                second.request(PING)
            assert second.close_code() == websockets_live.TOO_MANY
        with open_live_page(web, task_id, token=other) as of_another:
            assert of_another.request(PING)["type"] == "pong"
    with open_live_page(web, task_id, token=token) as again:
        assert again.request(PING)["type"] == "pong"


def test_frames_of_a_fast_client_are_handled_at_a_limited_rate(
    web: str, token: str, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websockets_live, "PER_SECOND", 5)
    with open_live_page(web, make_task("say hi"), token=token) as task_socket:
        task_socket.request(PING)
        started = time.monotonic()
        for _ in range(4):
            task_socket.request(PING)
        assert time.monotonic() - started > 0.6


def test_a_forged_message_is_not_forwarded_to_viewers(
    web: str, token: str, make_task: Make
) -> None:
    task_id = make_task("say hi")
    forged = b'{"type": "live_problem", "message": "forged"}'
    with connect_worker() as worker, open_live_page(web, task_id, token=token) as task_socket:
        worker.receive("watch")
        worker.client.publish(viewers_channel(task_id), forged)
        worker.send(task_id, type="live_problem", message="genuine")
        frames = task_socket.receive_until(lambda frame: frame["type"] == "live_problem")
    assert frames[-1]["message"] == "genuine"


def test_typed_text_is_encrypted_in_redis(
    web: str, token: str, make_task: Make, principal: Principal
) -> None:
    task_id = make_task("say hi")
    take_over_task(principal=principal, task_id=task_id)
    with connect_worker() as worker, open_live_page(web, task_id, token=token) as task_socket:
        assert send(task_socket, {"kind": "text", "text": "geheim"})["ok"] is True
        sealed, give_up_at = b"", time.monotonic() + 60
        while (worker.inbox.open(sealed) or {}).get("kind") != "input":
            assert time.monotonic() < give_up_at, "the worker's channel had no input message"
            published = worker.channel.get_message(ignore_subscribe_messages=True, timeout=1)
            sealed = published["data"] if published else b""
    assert b"geheim" not in sealed


def test_the_ticket_of_a_user_who_may_only_view_cannot_act(
    web: str, make_task: Make, principal: Principal, staff_client: Callable[..., Client]
) -> None:
    task_id = make_task("say hi")
    take_over_task(principal=principal, task_id=task_id)
    user = staff_client("runs.view_task")
    ticket = user.post(f"/admin/runs/task/{task_id}/ticket/").json()["ticket"]
    with open_live_page(web, task_id) as task_socket:
        assert task_socket.request({"type": "auth", "ticket": ticket})["ok"] is True
        assert send(task_socket, CLICK)["error"]["errorCode"] == "FORBIDDEN"


def test_messages_captured_in_redis_reach_no_viewer_of_another_task_and_none_twice(
    web: str, token: str, make_task: Make
) -> None:
    watched, other = make_task("say hi"), make_task("say ho")
    with (
        connect_worker() as worker,
        open_live_page(web, watched, token=token) as viewer,
        open_live_page(web, other, token=token) as other_viewer,
    ):
        for _ in range(2):
            worker.receive("watch")
        worker.channel.subscribe(viewers_channel(watched))
        worker.send(watched, type="live_problem", message="captured")
        captured = worker.capture()
        for task_id in (watched, other):
            worker.client.publish(viewers_channel(task_id), captured)
            worker.send(task_id, type="live_problem", message="last")
        problems = [
            [one["message"] for one in socket.receive_until(is_last) if "problem" in one["type"]]
            for socket in (viewer, other_viewer)
        ]
    assert problems == [["captured", "last"], ["last"]]


def test_whole_numbers_written_as_fractions_reach_the_worker_as_integers(
    web: str, token: str, make_task: Make, principal: Principal
) -> None:
    task_id = make_task("say hi")
    take_over_task(principal=principal, task_id=task_id)
    key = {"kind": "key", "action": "down", "key": "a", "modifiers": 2.0, "keyCode": 65.0}
    click = {**CLICK, "x": 10.5, "clicks": 1.0, "buttons": 1.0}
    with connect_worker() as worker, open_live_page(web, task_id, token=token) as task_socket:
        assert send(task_socket, key, click)["ok"] is True
        received = worker.receive("input")["events"]
    assert str(received[0]) == str({**key, "modifiers": 2, "keyCode": 65})
    assert str(received[1]) == str({**click, "clicks": 1, "buttons": 1})


def _forbid_to_operate(user: User) -> None:
    user.user_permissions.clear()


def _remove_from_staff(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=False)


@pytest.mark.parametrize("take_rights", [_forbid_to_operate, _remove_from_staff])
def test_a_user_who_lost_the_rights_meanwhile_cannot_act(
    web: str,
    make_task: Make,
    principal: Principal,
    staff_client: Callable[..., Client],
    take_rights: Callable[[User], None],
) -> None:
    task_id = make_task("say hi")
    take_over_task(principal=principal, task_id=task_id)
    client = staff_client("runs.view_task", "runs.change_task")
    ticket = client.post(f"/admin/runs/task/{task_id}/ticket/").json()["ticket"]
    with open_live_page(web, task_id) as task_socket:
        assert task_socket.request({"type": "auth", "ticket": ticket})["ok"] is True
        assert send(task_socket, CLICK)["ok"] is True
        take_rights(User.objects.get())
        assert send(task_socket, CLICK)["error"]["errorCode"] == "UNAUTHENTICATED"
