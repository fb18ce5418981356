"""Test one goal over several pages (open, search, fill, follow, extract) through MCP, REST and its
streams, and the WebSocket of a task; test_task_chat covers the chat page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from decisions.identity.principals import Principal
from runs.models import Run, Task
from runs.worker.worker import WorkerProcess
from tests.contract.mcp_host import PrincipalTransport, StdioHost, structured
from tests.integration.conftest import in_background  # noqa: F401  (a fixture)
from tests.support.agent_goals import SCHEMA
from tests.support.browsing_model import BrowsingModel, serve_catalogue
from tests.support.goal_checks import GOAL, check_events, check_reached
from tests.support.model_server import ModelServer
from tests.support.page_server import PageServer
from tests.support.rest import json_of
from tests.support.task_socket import Frame, open_task_socket

pytest_plugins = [
    "tests.support.workspace_fixtures",
    "tests.support.model_fixtures",
    "tests.support.agent_fixtures",
    "tests.support.browser_fixtures",
    "tests.support.rest_fixtures",
]
Background = Callable[[Callable[[], object]], Any]


@pytest.fixture(autouse=True)
def pages(model: ModelServer, page_server: PageServer, agent_settings: Any) -> PageServer:
    """Serve the pages, with a model that navigates them to the goal."""
    model.answer = BrowsingModel(serve_catalogue(page_server))
    return page_server


def events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream as they arrive; the id of each is its seq."""
    seen = ""
    for line in response.iter_lines():
        if line.startswith("id: "):
            seen = line.removeprefix("id: ")
        if line.startswith("data: "):
            event = json.loads(line.removeprefix("data: "))
            assert str(event["seq"]) == seen
            yield event


def read(
    api: httpx.Client, path: str, is_last: Callable[[dict[str, Any]], bool], after: int = 0
) -> list[dict[str, Any]]:
    """Return the events of a stream after a seq, up to the first that meets the condition."""
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
    with api.stream("GET", path, headers=headers) as response:
        got = []
        for event in events(response):
            got.append(event)
            if is_last(event):
                return got
    return got


def rests(event: Any) -> bool:
    """Return whether an event reports that the task waits for its user again."""
    return bool(event["type"] == "statusUpdate" and event["data"]["status"] == "ongoing")


def test_the_goal_runs_over_mcp_as_a_run_of_the_template(
    principal: Principal,
    worker: WorkerProcess,
    in_background: Background,  # noqa: F811
    pages: PageServer,
) -> None:
    host = StdioHost(PrincipalTransport(principal))
    try:
        call = {
            "templateId": "agent_task",
            "inputs": {"goal": GOAL},
            "options": {"mode": "async", "outputSchema": SCHEMA},
        }
        run_id = structured(host.call("run_task_template", call))["runId"]
        working = in_background(worker.work)
        told_so_far: list[dict[str, Any]] = []
        while not told_so_far or told_so_far[-1]["type"] != "run.succeeded":
            asked = {"runId": run_id, "after": len(told_so_far), "waitMs": 50_000}
            told_so_far += structured(host.call("subscribe_task_run_events", asked))["events"]
        shown = structured(host.call("wait_task_run", {"runId": run_id, "waitMs": 50_000}))
        whole = structured(host.call("get_artifact", {"artifactId": shown["artifactIds"][0]}))
    finally:
        host.close()
    working.join(60)
    check_reached(Run.objects.get(id=run_id), pages)
    check_events(told_so_far)
    assert shown["result"]["output"] == {"count": 7}
    assert json.loads(whole["data"])["output"] == {"count": 7}


def test_the_goal_runs_over_rest_and_its_streams_resume_after_the_last_seq(
    api: httpx.Client,
    worker: WorkerProcess,
    in_background: Background,  # noqa: F811
    pages: PageServer,
) -> None:
    task = json_of(api.post("/api/v1/tasks", json={"message": GOAL, "outputSchema": SCHEMA}), 201)
    working = in_background(worker.work)
    path = f"/api/v1/tasks/{task['taskId']}/events"
    first = read(api, path, lambda event: event["type"] == "toolUsed")
    rest = read(api, path, rests, after=first[-1]["seq"])
    working.join(60)
    run = Run.objects.get(task_id=task["taskId"])
    check_reached(run, pages)
    check_events([*first, *rest])
    assert (first[0]["type"], first[0]["data"]["content"]) == ("message", GOAL)
    said = [event["data"]["content"] for event in rest if event["type"] == "message"]
    assert said == ["There are 7 chairs."]
    assert all(event["data"].get("runId") in (None, run.id) for event in [*first, *rest])
    own = f"/api/v1/runs/{run.id}/events"
    begun = read(api, own, lambda event: event["type"] == "structuredOutput")
    ended = read(api, own, lambda event: False, after=begun[-1]["seq"])
    check_events([*begun, *ended])
    assert ended[-1]["type"] == "run.succeeded"
    shown = json_of(api.get(f"/api/v1/tasks/{task['taskId']}"))
    assert (shown["status"], len(shown["messages"])) == ("ongoing", 2)


def test_the_goal_runs_over_the_websocket_of_a_task(
    web: str,
    token: str,
    api: httpx.Client,
    worker: WorkerProcess,
    in_background: Background,  # noqa: F811
    pages: PageServer,
) -> None:
    task_id = json_of(api.post("/api/v1/tasks", json={}), 201)["taskId"]
    with open_task_socket(web, task_id, token=token) as task_socket:
        sync = task_socket.receive_until(_is("snapshotSync"))[-1]["event"]["data"]
        assert (sync["seq"], sync["state"]["status"]) == (0, "created")
        message = {"type": "user_message", "content": GOAL, "outputSchema": SCHEMA}
        task_socket.send({"v": 1, "type": "frontend_message", "id": "m-1", "message": message})
        frames = task_socket.receive_until(lambda frame: frame["type"] == "ack")
        ack = frames[-1]
        working = in_background(worker.work)
        frames += task_socket.receive_until(
            lambda frame: "event" in frame and rests(frame["event"])
        )
    working.join(60)
    assert (ack["id"], ack["ok"]) == ("m-1", True)
    heard = [frame for frame in frames if frame["type"] == "frontend_event"]
    assert {(frame["v"], frame["taskId"]) for frame in heard} == {(1, task_id)}
    run = Run.objects.get(id=ack["result"]["runId"])
    check_reached(run, pages)
    check_events([frame["event"] for frame in heard])
    assert heard[-1]["event"]["seq"] == Task.objects.get(id=task_id).last_seq


def _is(type_: str) -> Callable[[Frame], bool]:
    return lambda frame: bool(frame.get("event", {}).get("type") == type_)
