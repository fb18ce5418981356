"""Test one goal over several pages (open, search, fill, follow, extract) through REST and its
streams, and through the WebSocket of a task.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from runs.models import Run
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import SCHEMA
from tests.support.agent.browsing_model import BrowsingModel, serve_catalogue
from tests.support.agent.goal_checks import GOAL, check_events, check_reached
from tests.support.agent.model_server import ModelServer
from tests.support.browser.page_server import PageServer
from tests.support.rest.rest import json_of

Background = Callable[[Callable[[], object]], Any]


@pytest.fixture(autouse=True)
def pages(model: ModelServer, page_server: PageServer, agent_settings: Any) -> PageServer:
    """Serve the pages, with a model that navigates them to the goal."""
    model.answer = BrowsingModel(serve_catalogue(page_server))
    return page_server


def events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream as they arrive; the id of each is its seq."""
    last_id = ""
    for line in response.iter_lines():
        if line.startswith("id: "):
            last_id = line.removeprefix("id: ")
        if line.startswith("data: "):
            event = json.loads(line.removeprefix("data: "))
            assert str(event["seq"]) == last_id
            yield event


def read(
    api: httpx.Client, path: str, is_last: Callable[[dict[str, Any]], bool], after: int = 0
) -> list[dict[str, Any]]:
    """Return the events of a stream after a seq, up to the first that meets the condition."""
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    with api.stream("GET", path, headers=headers) as response:
        received = []
        for event in events(response):
            received.append(event)
            if is_last(event):
                return received
    return received


def is_waiting_for_user(event: Any) -> bool:
    """Return whether an event reports that the task waits for its user again."""
    return bool(event["type"] == "statusUpdate" and event["data"]["status"] == "ongoing")


def test_the_goal_runs_over_rest_and_its_streams_resume_after_the_last_seq(
    api: httpx.Client,
    worker: WorkerProcess,
    in_background: Background,
    pages: PageServer,
) -> None:
    task = json_of(api.post("/api/v1/tasks", json={"message": GOAL, "outputSchema": SCHEMA}), 201)
    work_thread = in_background(worker.work)
    path = f"/api/v1/tasks/{task['taskId']}/events"
    first = read(api, path, lambda event: event["type"] == "toolUsed")
    rest = read(api, path, is_waiting_for_user, after=first[-1]["seq"])
    work_thread.join(60)
    run = Run.objects.get(task_id=task["taskId"])
    check_reached(run, pages)
    check_events([*first, *rest])
    assert (first[0]["type"], first[0]["data"]["content"]) == ("message", GOAL)
    messages = [event["data"]["content"] for event in rest if event["type"] == "message"]
    assert messages == ["There are 7 chairs."]
    assert all(event["data"].get("runId") in (None, run.id) for event in [*first, *rest])
    run_events_path = f"/api/v1/runs/{run.id}/events"
    first_part = read(api, run_events_path, lambda event: event["type"] == "structuredOutput")
    second_part = read(api, run_events_path, lambda event: False, after=first_part[-1]["seq"])
    check_events([*first_part, *second_part])
    assert second_part[-1]["type"] == "run.succeeded"
    task = json_of(api.get(f"/api/v1/tasks/{task['taskId']}"))
    assert (task["status"], len(task["messages"])) == ("ongoing", 2)
