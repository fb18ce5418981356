"""Test the calls about tasks over REST: answers, status codes, and the stream of a task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.validation.json_schema import check, compile_schema, page_schema
from runs.api.schemas import tasks as schemas
from runs.models import Run
from runs.worker.worker import WorkerProcess
from tests.support.rest.rest import json_of, refusal

pytestmark = pytest.mark.usefixtures("talk_template")
TASKS = "/api/v1/tasks"
MakeClient = Callable[..., httpx.Client]


def create_task(api: httpx.Client, message: str | None = "say hi", **more: Any) -> dict[str, Any]:
    body = {**({"message": message} if message else {}), **more}
    return json_of(api.post(TASKS, json=body), 201)


def post_message(
    api: httpx.Client, task: dict[str, Any], content: str, **more: Any
) -> httpx.Response:
    return api.post(f"{TASKS}/{task['taskId']}/messages", json={"content": content, **more})


def validated(answer: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    check(compile_schema(schema), answer)
    return answer


def events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def test_a_task_reports_why_its_last_run_failed_until_a_run_succeeds(
    api: httpx.Client,
    worker: WorkerProcess,
) -> None:
    task = create_task(api, "fail")
    worker.work()
    shown = validated(json_of(api.get(f"{TASKS}/{task['taskId']}")), schemas.TASK)
    assert (shown["status"], shown["error"]["runId"]) == ("error", Run.objects.get().id)
    assert shown["error"]["message"] == "failed as instructed"
    assert shown["error"]["errorCode"]
    assert "error" not in json_of(api.get(TASKS))["tasks"][0]
    post_message(api, shown, "say better")
    assert "error" not in json_of(api.get(f"{TASKS}/{task['taskId']}"))
    worker.work()
    assert "error" not in json_of(api.get(f"{TASKS}/{task['taskId']}"))


@pytest.mark.slow
def test_a_task_starts_with_its_message_and_returns_its_answer(
    api: httpx.Client,
    worker: WorkerProcess,
) -> None:
    response = api.post(TASKS, json={"message": "say hi"})
    task = validated(json_of(response, 201), schemas.TASK)
    assert response.headers["Location"] == f"{TASKS}/{task['taskId']}"
    assert (task["status"], task["title"]) == ("running", "say hi")
    worker.work()
    shown = validated(json_of(api.get(f"{TASKS}/{task['taskId']}")), schemas.TASK)
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant"]
    assert shown["status"] == "completed"
    assert len(json_of(api.get(f"{TASKS}/{task['taskId']}?messages=1"))["messages"]) == 1


def test_tasks_are_listed_newest_first_by_status_and_in_pages(api: httpx.Client) -> None:
    task_ids = [create_task(api, None, title=name)["taskId"] for name in "abc"]
    page = page_schema("tasks", schemas.TASK)
    first = validated(json_of(api.get(TASKS, params={"limit": 2})), page)
    assert [task["taskId"] for task in first["tasks"]] == task_ids[:0:-1]
    assert (first["total"], first["hasMore"], first["nextCursor"]) == (3, True, "2")
    rest = json_of(api.get(TASKS, params={"offset": 2}))
    assert ([task["title"] for task in rest["tasks"]], rest["hasMore"]) == (["a"], False)
    assert json_of(api.get(TASKS, params={"status": "running"}))["total"] == 0


def test_a_message_with_a_repeated_key_is_accepted_once(api: httpx.Client) -> None:
    task = create_task(api)
    first = validated(
        json_of(post_message(api, task, "say more", idempotencyKey="k"), 202), schemas.SENT_MESSAGE
    )
    assert (first["queued"], first["deduplicated"]) == (True, False)
    again = json_of(post_message(api, task, "say more", idempotencyKey="k"))
    assert again == {**first, "deduplicated": True}
    assert (
        refusal(post_message(api, task, "say less", idempotencyKey="k"), 409)["errorCode"]
        == "CONFLICT"
    )
    assert Run.objects.count() == 2


def test_a_repeated_key_returns_the_same_task(api: httpx.Client) -> None:
    first = create_task(api, idempotencyKey="k")
    again = json_of(api.post(TASKS, json={"message": "say hi", "idempotencyKey": "k"}))
    assert again["taskId"] == first["taskId"]


def test_a_busy_task_refuses_a_message_that_may_not_be_queued(api: httpx.Client) -> None:
    task = create_task(api)
    problem = refusal(post_message(api, task, "say more", onBusy="refuse"), 409)
    assert (problem["errorCode"], problem["retryable"]) == ("TASK_BUSY", True)
    assert problem["details"] == {"runId": Run.objects.get().id}


def test_a_task_is_taken_over_returned_and_stopped(api: httpx.Client) -> None:
    path = f"{TASKS}/{create_task(api)['taskId']}"
    taken = validated(json_of(api.post(f"{path}/takeover")), schemas.TASK)
    assert (taken["status"], "takenOverAt" in taken) == ("takeover", True)
    assert taken["takenOverBy"] == Run.objects.get().principal_id
    given_back = json_of(api.post(f"{path}/resume"))
    assert (given_back["status"], "takenOverBy" in given_back) == ("running", False)
    assert refusal(api.post(f"{path}/resume"), 409)["errorCode"] == "CONFLICT"
    assert json_of(api.post(f"{path}/stop"))["status"] == "completed"
    assert Run.objects.get().status == "canceled"


@pytest.mark.slow
def test_the_event_log_is_read_in_pages_and_a_read_waits_for_the_next_event(
    api: httpx.Client,
    worker: WorkerProcess,
) -> None:
    path = f"{TASKS}/{create_task(api)['taskId']}/events"
    first = validated(json_of(api.get(path, params={"limit": 1})), schemas.EVENT_PAGE)
    assert ([event["type"] for event in first["events"]], first["lastSeq"]) == (["message"], 1)
    worker.work()
    rest = validated(
        json_of(api.get(path, params={"after": 1, "waitMs": 30_000})), schemas.EVENT_PAGE
    )
    assert rest["events"][-1]["data"]["status"] == "completed"
    assert [event["seq"] for event in rest["events"]] == list(range(2, rest["lastSeq"] + 1))


@pytest.mark.slow
def test_a_stream_continues_after_a_run_ends(
    api: httpx.Client,
    worker: WorkerProcess,
) -> None:
    task = create_task(api)
    headers = {"Accept": "text/event-stream", "Last-Event-ID": "2"}
    with api.stream("GET", f"{TASKS}/{task['taskId']}/events", headers=headers) as response:
        assert response.headers["content-type"] == "text/event-stream"
        stream = events(response)
        assert next(stream)["seq"] == 3
        worker.work()
        assert any(event["type"] == "run.succeeded" for event in stream)
        post_message(api, task, "say more")
        worker.work()
        assert any(event["type"] == "run.succeeded" for event in stream)


def test_a_token_that_may_only_chat_can_start_the_agent_and_nothing_else(
    client_with: MakeClient,
) -> None:
    client = client_with(scopes=frozenset({"tasks:read", "tasks:write"}))
    task = create_task(client)
    assert post_message(client, task, "say more").status_code == 202
    assert refusal(client.get("/api/v1/runs"), 403)


def test_a_message_that_needs_a_confirmation_writes_nothing_before_it(
    api: httpx.Client,
) -> None:
    task = create_task(api, None)
    create_rule(RuleFields("confirm", tool="run_task_template", reason="test"), actor="t")
    assert post_message(api, task, "say hi").json()["errorCode"] == "CONFIRMATION_REQUIRED"
    assert api.post(TASKS, json={"message": "say hi"}).status_code == 202
    assert json_of(api.get(TASKS))["total"] == 1
    assert json_of(api.get(f"{TASKS}/{task['taskId']}"))["messages"] == []
