"""Test the WebSocket of a task: who may open it, what it sends, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.conf import settings
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from decisions.audit.anonymous_events import write_counted_events
from decisions.foundation.validation.json_schema import check, compile_schema
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Token
from runs.api.schemas import tasks as schemas
from runs.conversations.services import create_task
from runs.models import Run, Task, TaskMessage, TaskTicket
from runs.streaming import credential_checks
from runs.websockets import connection
from runs.worker.worker import WorkerProcess
from tests.support.rest.rest import bearer, json_of
from tests.support.runs.task_socket import TaskSocket, is_event, open_task_socket

Make = Callable[..., str]


def ticket(api: httpx.Client, task_id: str) -> str:
    return str(json_of(api.post(f"/api/v1/tasks/{task_id}/ticket"))["ticket"])


def receive_snapshot(task_socket: TaskSocket) -> dict[str, Any]:
    frame = task_socket.receive()
    assert is_event("snapshotSync")(frame), frame
    snapshot: dict[str, Any] = frame["event"]["data"]
    return snapshot


@pytest.mark.slow
def test_a_page_receives_the_status_of_the_task_and_its_events(
    web: str,
    token: str,
    make_task: Make,
    worker: WorkerProcess,
) -> None:
    task_id = make_task()
    with open_task_socket(web, task_id, token=token) as task_socket:
        snapshot = receive_snapshot(task_socket)
        assert (snapshot["seq"], snapshot["state"]["status"]) == (0, "created")
        answer = task_socket.send_message("say hello; use browser_click")
        assert answer["ok"], answer
        worker.work()
        is_status_update = is_event("statusUpdate")
        frames = task_socket.receive_until(
            lambda f: is_status_update(f) and f["event"]["data"]["status"] == "ongoing"
        )
    seqs = [frame["event"]["seq"] for frame in frames]
    assert seqs == list(range(seqs[0], Task.objects.get().last_seq + 1))
    for frame in frames:
        check(compile_schema(schemas.EVENT), frame["event"])
    types = [frame["event"]["type"] for frame in frames]
    assert {"chatDelta", "toolUsed", "message", "run.succeeded"} <= set(types)


def test_a_page_that_reconnects_gets_every_event_exactly_once(
    web: str, token: str, make_task: Make
) -> None:
    task_id = make_task("say one")
    with open_task_socket(web, task_id, token=token, query="?after=1") as task_socket:
        receive_snapshot(task_socket)
        assert task_socket.receive()["event"]["seq"] == 2


def test_a_ticket_opens_one_connection(web: str, api: httpx.Client, make_task: Make) -> None:
    task_id = make_task()
    frame = {"type": "auth", "ticket": ticket(api, task_id), "id": "a"}
    with open_task_socket(web, task_id) as task_socket:
        assert task_socket.request(frame)["ok"] is True
        receive_snapshot(task_socket)
        assert task_socket.send_message("say hi")["ok"] is True
    with open_task_socket(web, task_id) as task_socket:
        assert task_socket.request(frame)["error"]["errorCode"] == "UNAUTHENTICATED"
        assert task_socket.close_code() == 4401


@pytest.mark.parametrize("credential", ["ticket", "token"])
def test_a_guessed_ticket_or_token_is_recorded_without_the_guess(
    web: str, make_task: Make, credential: str
) -> None:
    task_id = make_task()
    for _ in range(3):
        with open_task_socket(web, task_id) as task_socket:
            frame = {"type": "auth", credential: "cty_guessed"}
            assert task_socket.request(frame)["ok"] is False
    write_counted_events(unfinished=True)
    rows = AuditEntry.objects.filter(action="access.refused")
    assert sum(row.metadata["count"] for row in rows) == 3
    assert {row.resource_id for row in rows} == {f"/ws/tasks/{task_id}"}
    assert "guessed" not in str([row.metadata for row in rows])


def test_a_ticket_is_valid_for_its_task_and_for_one_minute(
    web: str, api: httpx.Client, make_task: Make
) -> None:
    other = ticket(api, make_task())
    task_id = make_task()
    expired = ticket(api, task_id)
    TaskTicket.objects.filter(task_id=task_id).update(expires_at="2020-01-01T00:00:00Z")
    for invalid in (other, expired, "tkt_made_up", "x"):
        with open_task_socket(web, task_id) as task_socket:
            assert task_socket.request({"type": "auth", "ticket": invalid})["ok"] is False
            assert task_socket.close_code() == 4401


def test_a_token_is_accepted_in_the_first_frame_as_in_the_header(
    web: str, token: str, make_task: Make
) -> None:
    with open_task_socket(web, make_task()) as task_socket:
        assert task_socket.request({"type": "auth", "token": token, "after": 0})["ok"] is True
        receive_snapshot(task_socket)


def test_without_a_credential_nothing_is_sent(
    web: str, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "AUTH_S", 0.1)
    task_id = make_task("say one")
    with open_task_socket(web, task_id) as task_socket:
        assert task_socket.close_code() == 4401
    for frame in ({"type": "ping"}, {"type": "auth"}, "no json", {"type": "auth", "ticket": 1}):
        monkeypatch.setattr(connection, "AUTH_S", 30)
        with open_task_socket(web, task_id) as task_socket:
            assert task_socket.request(frame)["ok"] is False
            assert task_socket.close_code() == 4401


def test_an_invalid_token_is_refused_before_the_handshake(web: str, make_task: Make) -> None:
    with (
        pytest.raises(InvalidStatus) as refused,
        open_task_socket(web, make_task(), token="cty_none"),
    ):
        pass
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://["]
)
def test_a_foreign_origin_is_refused_before_the_handshake(
    web: str, token: str, make_task: Make, origin: str
) -> None:
    with (
        pytest.raises(InvalidStatus),
        open_task_socket(web, make_task(), token=token, origin=origin),
    ):
        pass


def test_the_sites_own_origin_and_a_trusted_origin_may_connect(
    web: str, token: str, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        settings, "CSRF_TRUSTED_ORIGINS", ["https://front.example", "https://*.good.example"]
    )
    task_id = make_task()
    for origin in (web, "https://front.example", "https://app.good.example"):
        with open_task_socket(web, task_id, token=token, origin=origin) as task_socket:
            receive_snapshot(task_socket)


def test_another_host_name_and_another_path_are_refused(
    web: str, token: str, make_task: Make
) -> None:
    task_id = make_task()
    other_host = {"Host": "other.invalid", **bearer(token)}
    address = web.replace("http", "ws", 1)
    url = f"{address}/ws/tasks/{task_id}"
    with pytest.raises(InvalidStatus), connect(url, additional_headers=other_host):
        pass
    with pytest.raises(InvalidStatus), connect(f"{address}/ws/other"):
        pass


def test_a_revoked_token_cannot_send_and_is_disconnected(
    web: str, token: str, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = make_task()
    with monkeypatch.context() as between_checks:
        between_checks.setattr(credential_checks, "is_credential_active", lambda _: True)
        with open_task_socket(web, task_id, token=token) as task_socket:
            receive_snapshot(task_socket)
            Token.objects.update(revoked_at="2026-01-01T00:00:00Z")
            assert task_socket.send_message("say hi")["error"]["errorCode"] == "UNAUTHENTICATED"
    assert not Run.objects.exists()
    Token.objects.update(revoked_at=None)
    monkeypatch.setattr(credential_checks, "CHECK_S", 0.05)
    with open_task_socket(web, task_id, token=token) as task_socket:
        receive_snapshot(task_socket)
        Token.objects.update(revoked_at="2026-01-01T00:00:00Z")
        assert task_socket.close_code() == 4401


INVALID_FRAMES: dict[str, Any] = {
    "no json": "{",
    "no object": "[]",
    "a number": "1",
    "no type": {"id": "x"},
    "an unknown type": {"type": "shout"},
    "a type that is no text": {"type": 1},
    "another version": {"v": 2, "type": "ping"},
    "one field too many": {"type": "ping", "more": 1},
    "an id that is no text": {"type": "ping", "id": 1},
    "an id that is too long": {"type": "ping", "id": "x" * 256},
    "an id with a control character": {"type": "ping", "id": "a\nb"},
    "a key twice": '{"type": "ping", "type": "ping"}',
    "NaN": '{"type": "ping", "id": NaN}',
    "a NUL": '{"type": "ping", "id": "a\\u0000"}',
    "half a surrogate pair": '{"type": "ping", "id": "\\ud800"}',
    "deep nesting": '{"type": "ping", "id": ' + "[" * 50 + "]" * 50 + "}",
    "authenticated again": {"type": "auth", "ticket": "tkt_x"},
    "no message": {"type": "frontend_message"},
    "a message that is no object": {"type": "frontend_message", "message": "hi"},
    "an unknown message": {"type": "frontend_message", "message": {"type": "shout"}},
    "no content": {"type": "frontend_message", "message": {"type": "user_message"}},
    "blank content": {
        "type": "frontend_message",
        "message": {"type": "user_message", "content": " \n"},
    },
    "content over the limit": {
        "type": "frontend_message",
        "message": {"type": "user_message", "content": "x" * 65_537},
    },
    "an unknown value of onBusy": {
        "type": "frontend_message",
        "message": {"type": "user_message", "content": "x", "onBusy": "shout"},
    },
    "another task": {
        "type": "frontend_message",
        "message": {"type": "user_message", "content": "x", "taskId": "task_other"},
    },
    "an invalid outputSchema": {
        "type": "frontend_message",
        "message": {"type": "user_message", "content": "x", "outputSchema": {"type": "thing"}},
    },
}


@pytest.mark.parametrize("name", INVALID_FRAMES)
def test_a_bad_frame_gets_an_error_and_the_connection_stays_open(
    web: str, token: str, make_task: Make, name: str
) -> None:
    with open_task_socket(web, make_task(), token=token) as task_socket:
        receive_snapshot(task_socket)
        answer = task_socket.request(INVALID_FRAMES[name])
        assert (answer["type"], answer.get("ok")) == ("ack", False)
        assert answer["error"]["errorCode"] == "INVALID_PARAMETER"
        assert "Traceback" not in json.dumps(answer)
        assert task_socket.request({"v": 1, "type": "ping", "id": "p"}) == {
            "v": 1,
            "type": "pong",
            "id": "p",
        }
    assert not TaskMessage.objects.exists()


def test_binary_frames_and_frames_that_are_too_large_close_the_connection(
    web: str, token: str, make_task: Make
) -> None:
    for frame, code in ((b"{}", 1003), ("x" * (1024 * 1024 + 1), 1009)):
        with open_task_socket(web, make_task(), token=token) as task_socket:
            receive_snapshot(task_socket)
            task_socket.send(frame)
            assert task_socket.close_code() == code


def test_the_id_of_a_message_is_its_idempotency_key(web: str, token: str, make_task: Make) -> None:
    with open_task_socket(web, make_task(), token=token) as task_socket:
        receive_snapshot(task_socket)
        first, again = (
            task_socket.send_message("say hi", "m1"),
            task_socket.send_message("say hi", "m1"),
        )
        other = task_socket.send_message("say more", "m1")
    assert first["result"]["message"] == again["result"]["message"]
    assert again["result"]["deduplicated"] is True
    assert other["error"]["errorCode"] == "CONFLICT"
    assert Run.objects.count() == 1


def test_task_actions_are_performed_over_the_connection(
    web: str, token: str, make_task: Make
) -> None:
    with open_task_socket(web, make_task("say hi"), token=token) as task_socket:
        receive_snapshot(task_socket)

        def send_action(action: str) -> Any:
            return task_socket.request({"type": "frontend_message", "message": {"type": action}})

        assert send_action("takeover")["result"]["status"] == "takeover"
        assert send_action("resume")["result"]["status"] == "running"
        assert send_action("resume")["error"]["errorCode"] == "CONFLICT"
        assert send_action("stop")["result"]["status"] == "completed"


def test_too_many_frames_per_second_are_refused_and_the_connection_stays_open(
    web: str, token: str, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_task_socket(web, make_task(), token=token) as task_socket:
        receive_snapshot(task_socket)
        monkeypatch.setattr(settings, "THROTTLE_PER_SECOND", 0)
        assert task_socket.request({"type": "ping"})["error"]["errorCode"] == "TOO_MANY_REQUESTS"
        monkeypatch.setattr(settings, "THROTTLE_PER_SECOND", 1000)
        assert task_socket.request({"type": "ping"})["type"] == "pong"


def test_a_ticket_has_the_scopes_of_its_caller(
    web: str, client_with: Callable[..., httpx.Client], make_task: Make
) -> None:
    task_id = make_task()
    reader = client_with(scopes=frozenset({"tasks:read"}), trust="local")
    with open_task_socket(web, task_id) as task_socket:
        frame = {"type": "auth", "ticket": ticket(reader, task_id)}
        assert task_socket.request(frame)["ok"] is True
        receive_snapshot(task_socket)
        answer = task_socket.send_message("say hi")
        assert answer["error"]["errorCode"] == "FORBIDDEN"


def test_a_token_in_a_frame_through_a_proxy_is_remote(
    web: str, token: str, make_task: Make, remote: Principal, talk_template: None
) -> None:
    headers, address = {"X-Forwarded-For": "203.0.113.7"}, web.replace("http", "ws", 1)
    with connect(f"{address}/ws/tasks/{make_task()}", additional_headers=headers) as connected:
        task_socket = TaskSocket(connected)
        task_socket.request({"type": "auth", "token": token})
        assert next(task_socket.remaining_frames(), None) is None
        assert task_socket.close_code() == 4404
    task, _ = create_task(principal=remote)
    address = web.replace("http", "ws", 1) + f"/ws/tasks/{task['taskId']}"
    with connect(address, additional_headers={"X-Forwarded-For": "203.0.113.7"}) as connected:
        task_socket = TaskSocket(connected)
        assert task_socket.request({"type": "auth", "token": token})["ok"] is True
        assert task_socket.send_message("say hi")["ok"] is True
    assert Run.objects.get().trust == "remote"


@pytest.mark.parametrize("after", ["x", "-1"])
def test_an_invalid_seq_in_the_address_closes_the_connection(
    web: str, token: str, make_task: Make, after: str
) -> None:
    with open_task_socket(web, make_task(), token=token, query=f"?after={after}") as task_socket:
        assert next(task_socket.remaining_frames(), None) is None
        assert task_socket.close_code() == 4400
