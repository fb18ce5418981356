"""Test long reads of a task's event log: resuming, order, and the end of the authorization."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import httpx
import pytest
from django.contrib.auth import get_user_model
from django.db import OperationalError
from django.db.models import QuerySet

from decisions.foundation.errors import NotAuthenticated
from decisions.identity.principals import Principal, admin_principal
from decisions.models import Token
from runs.conversations.log import append_events
from runs.conversations.tickets import create_ticket, redeem_ticket
from runs.lifecycle.changes import NewEvent
from runs.models import TaskTicket
from runs.streaming import credential_checks
from runs.websockets import conversation
from tests.support.rest.rest import json_of
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.task_socket import is_event, open_task_socket

pytestmark = pytest.mark.usefixtures("talk_template")
Make = Callable[..., str]
EVENT = NewEvent("chatDelta", {"content": "word "})


def add_events(task_id: str, count: int) -> None:
    for _ in range(0, count, 500):
        append_events(task_id, [EVENT] * 500)


def read_seqs(response: httpx.Response) -> Iterator[int]:
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield int(json.loads(line.removeprefix("data: "))["seq"])


def open_stream(
    api: httpx.Client, task_id: str, after: int = 0
) -> AbstractContextManager[httpx.Response]:
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    return api.stream("GET", f"/api/v1/tasks/{task_id}/events", headers=headers)


def test_a_stream_ends_when_its_token_is_revoked(
    api: httpx.Client, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credential_checks, "CHECK_S", 0.0)
    task_id = make_task()
    add_events(task_id, 500)
    with open_stream(api, task_id) as response:
        seqs = read_seqs(response)
        assert next(seqs) == 1
        Token.objects.update(revoked_at=datetime.now(UTC))
        add_events(task_id, 1000)
        assert len(list(islice(seqs, 600))) <= 500  # the stream ends


def test_the_streams_of_a_token_share_one_check_of_it(
    api: httpx.Client, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []

    def count(principal: Principal) -> bool:
        checked.append(principal.id)
        return True

    monkeypatch.setattr(credential_checks, "is_credential_active", count)
    task_id = make_task()
    with ExitStack() as stack:
        streams = [read_seqs(stack.enter_context(open_stream(api, task_id))) for _ in range(3)]
        for _ in range(2):
            add_events(task_id, 500)
            for seqs in streams:
                assert len(list(islice(seqs, 500))) == 500
    assert len(checked) == 1


def test_a_busy_connection_ends_when_its_token_is_revoked(
    web: str, token: str, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credential_checks, "CHECK_S", 0.01)
    task_id = make_task()
    add_events(task_id, 10_000)
    with open_task_socket(web, task_id, token=token, query="?after=0") as task_socket:
        task_socket.receive_until(is_event("chatDelta"))
        Token.objects.update(revoked_at=datetime.now(UTC))
        received = list(islice(task_socket.remaining_frames(), 9000))
        assert len(received) < 9000
        assert task_socket.close_code() == 4401


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
    user = get_user_model().objects.create(username="pat", is_staff=True)
    workspace = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id}
    task_id, admin = make_task(), admin_principal("pat", **workspace)
    assert (
        redeem_ticket(create_ticket(principal=admin, task_id=task_id)["ticket"], task_id=task_id)
        == admin
    )
    ticket = create_ticket(principal=admin, task_id=task_id)["ticket"]
    user.is_active = False
    user.save()
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

    def raise_error(**arguments: object) -> None:
        raise OperationalError("unavailable")

    monkeypatch.setattr(conversation, "list_task_events", raise_error)
    with open_task_socket(web, task_id, token=token, query="?after=0") as task_socket:
        assert task_socket.close_code() == 1001


def test_only_a_digest_of_a_ticket_is_stored(api: httpx.Client, make_task: Make) -> None:
    ticket = json_of(api.post(f"/api/v1/tasks/{make_task()}/ticket"))["ticket"]
    assert ticket not in str(TaskTicket.objects.values())


def test_of_two_concurrent_uses_of_a_ticket_one_succeeds(
    principal: Principal, make_task: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = make_task()
    ticket = create_ticket(principal=principal, task_id=task_id)["ticket"]
    first, both_found_it = QuerySet.first, threading.Barrier(2)

    def find_together(rows: QuerySet[Any]) -> Any:
        row = first(rows)
        if rows.model is TaskTicket:
            both_found_it.wait(20)
        return row

    def is_accepted() -> bool:
        try:
            redeem_ticket(ticket, task_id=task_id)
        except NotAuthenticated:
            return False
        return True

    monkeypatch.setattr(QuerySet, "first", find_together)
    assert sorted(at_once([is_accepted] * 2)) == [False, True]
