"""A run's events over REST: pages, the live stream, and resuming the stream."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from runs.models import Run
from runs.streaming import sse
from tests.support.rest.rest import json_of, refusal

STREAM = {"Accept": "text/event-stream"}


def events_path(run_id: str) -> str:
    return f"/api/v1/runs/{run_id}/events"


@contextlib.contextmanager
def stream(
    api: httpx.Client, run_id: str, **headers: str
) -> Iterator[tuple[httpx.Response, Iterator[dict[str, Any]]]]:
    """Open a run's stream; yield the response and its events as they arrive."""
    with api.stream("GET", events_path(run_id), headers={**STREAM, **headers}) as response:
        yield response, _events(response.iter_lines())


def _events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    seq = ""
    for line in lines:
        if line.startswith("id: "):
            seq = line.removeprefix("id: ")
        elif line.startswith("data: "):
            event = json.loads(line.removeprefix("data: "))
            assert str(event["seq"]) == seq
            yield event


def cancel_soon(api: httpx.Client, run_id: str) -> threading.Timer:
    timer = threading.Timer(0.4, lambda: api.post(f"/api/v1/runs/{run_id}/cancel"))
    timer.start()
    return timer


def test_events_come_in_pages(api: httpx.Client, submit: Callable[..., str]) -> None:
    run_id = submit()
    api.post(f"/api/v1/runs/{run_id}/cancel")
    first = json_of(api.get(events_path(run_id), params={"limit": 1}))
    assert [event["type"] for event in first["events"]] == ["run.queued"]
    assert (first["lastSeq"], first["terminal"]) == (1, False)
    last = json_of(api.get(events_path(run_id), params={"after": 1}))
    assert [event["type"] for event in last["events"]] == ["run.canceled"]
    assert last["terminal"] is True


def test_a_page_request_can_wait_for_the_next_event(
    api: httpx.Client, submit: Callable[..., str]
) -> None:
    run_id = submit()
    timer = cancel_soon(api, run_id)
    page = json_of(api.get(events_path(run_id), params={"after": 1, "waitMs": 20_000}))
    assert [event["type"] for event in page["events"]] == ["run.canceled"]
    timer.join()


def test_a_stream_sends_new_events_and_ends_with_the_run(
    api: httpx.Client, submit: Callable[..., str]
) -> None:
    run_id = submit()
    timer = cancel_soon(api, run_id)
    with stream(api, run_id) as (response, events):
        assert response.headers["content-type"] == "text/event-stream"
        assert response.headers["cache-control"] == "no-cache"
        assert response.headers["x-accel-buffering"] == "no"
        assert [(event["seq"], event["type"]) for event in events] == [
            (1, "run.queued"),
            (2, "run.canceled"),
        ]
    timer.join()


def test_a_reader_that_reconnects_gets_the_remaining_events_once(
    api: httpx.Client, submit: Callable[..., str]
) -> None:
    run_id = submit()
    with stream(api, run_id) as (_, events):
        first = next(events)
    api.post(f"/api/v1/runs/{run_id}/cancel")
    with stream(api, run_id, **{"Last-Event-ID": str(first["seq"])}) as (_, events):
        assert [event["type"] for event in events] == ["run.canceled"]


def test_a_reader_that_has_every_event_is_answered_204(
    api: httpx.Client, make_run: Callable[..., Run]
) -> None:
    run = make_run(status="succeeded", last_seq=0)
    response = api.get(events_path(run.id), headers={**STREAM, "Last-Event-ID": "7"})
    assert (response.status_code, response.content) == (204, b"")


def test_an_idle_stream_sends_comments(
    api: httpx.Client, submit: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "KEEP_ALIVE_S", 0.05)
    run_id = submit()
    with api.stream("GET", events_path(run_id), headers=STREAM) as response:
        comments = (line for line in response.iter_lines() if line.startswith(":"))
        assert next(comments)
        assert next(comments)


def test_a_stream_is_refused_in_the_common_error_shape_before_it_starts(
    api: httpx.Client, anonymous: httpx.Client, submit: Callable[..., str]
) -> None:
    assert refusal(api.get(events_path("run_missing"), headers=STREAM), 404)
    assert refusal(anonymous.get(events_path(submit()), headers=STREAM), 401)


@pytest.mark.parametrize("last", [b"x", b"-1", b"1.5", b"9" * 16, b"\xb2"])
def test_an_invalid_last_event_id_is_refused(
    api: httpx.Client, submit: Callable[..., str], last: bytes
) -> None:
    run_id = submit()
    api.post(f"/api/v1/runs/{run_id}/cancel")  # its stream would end
    headers = [(b"Accept", b"text/event-stream"), (b"Last-Event-ID", last)]
    problem = refusal(api.get(events_path(run_id), headers=headers), 400)
    assert "Last-Event-ID" in problem["message"]


def test_a_head_request_for_a_stream_returns_at_once(
    api: httpx.Client, submit: Callable[..., str]
) -> None:
    response = api.head(events_path(submit()), headers=STREAM)
    assert (response.status_code, response.content) == (200, b"")


def test_many_listeners_hold_no_thread_each_and_all_receive_the_end(
    api: httpx.Client, web: str, token: str, submit: Callable[..., str]
) -> None:
    run_id, count = submit(), 40
    api.get("/healthz")
    before = threading.active_count()
    with contextlib.ExitStack() as open_streams:
        client = open_streams.enter_context(
            httpx.Client(base_url=web, headers=api.headers, timeout=60)
        )
        listening = [open_streams.enter_context(stream(client, run_id)) for _ in range(count)]
        for _, events in listening:
            assert next(events)["seq"] == 1
        # The database's few threads may have started meanwhile; a listener has none.
        assert threading.active_count() < before + 15
        json_of(api.post(f"/api/v1/runs/{run_id}/cancel"))
        for _, events in listening:
            assert [event["type"] for event in events] == ["run.canceled"]


def test_the_listener_of_a_closed_connection_is_removed(
    api: httpx.Client, submit: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    lines = sse._lines

    async def watched(*args: Any) -> Any:
        try:
            async for line in lines(*args):
                yield line
        finally:
            ended.append("ended")

    monkeypatch.setattr(sse, "_lines", watched)
    with stream(api, submit()) as (_, events):
        next(events)
    deadline = time.monotonic() + 10
    while not ended and time.monotonic() < deadline:
        time.sleep(0.02)
    assert ended == ["ended"]
