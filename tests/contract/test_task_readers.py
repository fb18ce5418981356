"""Test long reads of a task's event log: resuming, order, and the end of the authorization."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime

import httpx
import pytest
from django.contrib.auth import get_user_model
from django.db import OperationalError

from decisions.errors import NotAuthenticated
from decisions.identity.principals import Principal, admin_principal
from decisions.models import Token
from runs.conversations.log import append_events
from runs.conversations.tickets import create_ticket, redeem_ticket
from runs.lifecycle.changes import NewEvent
from runs.models import TaskTicket
from runs.streaming import sse
from runs.websockets import conversation
from tests.support.rest import json_of
from tests.support.task_socket import is_event, open_task_socket

pytest_plugins = ["tests.support.rest_fixtures", "tests.support.task_fixtures"]
pytestmark = pytest.mark.usefixtures("talk_template")
Make = Callable[..., str]
NOTHING = NewEvent("chatDelta", {"content": "word "})


def fill(task_id: str, count: int) -> None:
    for _ in range(0, count, 500):
        append_events(task_id, [NOTHING] * 500)


def seqs(response: httpx.Response) -> Iterator[int]:
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield int(json.loads(line.removeprefix("data: "))["seq"])


def follow(
    api: httpx.Client, task_id: str, after: int = 0
) -> AbstractContextManager[httpx.Response]:
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    return api.stream("GET", f"/api/v1/tasks/{task_id}/events", headers=headers)


def test_readers_that_reconnect_get_thousands_of_events_in_order(
    api: httpx.Client, make_task: Make
) -> None:
    task_id = make_task()
    fill(task_id, 3000)
    got: list[int] = []
    for _ in range(4):  # each reader disconnects before the end
        with follow(api, task_id, after=len(got)) as response:
            for seq in seqs(response):
                got.append(seq)
                if len(got) % 900 == 0:
                    break
                if len(got) == 3000:
                    break
    with follow(api, task_id, after=3000) as response:
        append_events(task_id, [NOTHING])
        got.append(next(seqs(response)))
    assert got == list(range(1, 3002))


def test_a_stream_ends_when_its_token_is_revoked(
    api: httpx.Client, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "CHECK_S", 0.0)
    task_id = make_task()
    fill(task_id, 500)
    with follow(api, task_id) as response:
        coming = seqs(response)
        assert next(coming) == 1
        Token.objects.update(revoked_at=datetime.now(UTC))
        append_events(task_id, [NOTHING])
        assert len(list(coming)) <= 500  # the stream ends


def test_a_busy_connection_ends_when_its_token_is_revoked(
    web: str, token: str, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "CHECK_S", 0.01)
    task_id = make_task()
    fill(task_id, 10_000)
    with open_task_socket(web, task_id, token=token, query="?after=0") as task_socket:
        task_socket.receive_until(is_event("chatDelta"))
        Token.objects.update(revoked_at=datetime.now(UTC))
        got = list(task_socket.remaining_frames())
        assert task_socket.close_code() == 4401
    assert len(got) < 9000


def test_a_ticket_is_invalid_once_its_token_is_revoked(
    web: str, api: httpx.Client, make_task: Make
) -> None:
    task_id = make_task()
    ticket = json_of(api.post(f"/api/v1/tasks/{task_id}/ticket"))["ticket"]
    Token.objects.update(revoked_at=datetime.now(UTC))
    with open_task_socket(web, task_id) as task_socket:
        assert task_socket.request({"type": "auth", "ticket": ticket})["ok"] is False
        assert task_socket.close_code() == 4401
    assert not TaskTicket.objects.exists()


def test_an_admin_ticket_is_invalid_once_the_user_is_deactivated(
    principal: Principal, make_task: Make
) -> None:
    login = get_user_model().objects.create(username="pat")
    place = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id}
    task_id, pat = make_task(), admin_principal("pat", **place)
    assert (
        redeem_ticket(create_ticket(principal=pat, task_id=task_id)["ticket"], task_id=task_id)
        == pat
    )
    ticket = create_ticket(principal=pat, task_id=task_id)["ticket"]
    login.is_active = False
    login.save()
    with pytest.raises(NotAuthenticated):
        redeem_ticket(ticket, task_id=task_id)


@pytest.mark.parametrize(
    "bad_id", ["%00", "task_%00", "%ff", "task_x/more", "", "%F0%9F%92%A9" * 100]
)
def test_an_invalid_id_is_answered_as_a_missing_task(web: str, token: str, bad_id: str) -> None:
    with open_task_socket(web, bad_id, token=token) as task_socket:
        assert task_socket.close_code() == 4404


def test_an_unavailable_database_closes_a_connection_so_that_the_client_reconnects(
    web: str, token: str, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = make_task("say one")

    def away(*given: object) -> None:
        raise OperationalError("away")

    monkeypatch.setattr(conversation, "read_task_page", away)
    with open_task_socket(web, task_id, token=token, query="?after=0") as task_socket:
        assert task_socket.close_code() == 1001
