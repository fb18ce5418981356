"""Lists of runs over REST: searched, filtered, sorted, and paged by a cursor."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from runs.models import Run
from runs.webhooks.deliveries import run_message
from tests.support.rest.rest import json_of, refusal, submission

RUNS = "/api/v1/runs"
NOW = datetime.now(UTC)


def ids_of(api: httpx.Client, **params: Any) -> list[str]:
    """Return the ids of the runs on a page."""
    return [run["runId"] for run in json_of(api.get(RUNS, params=params))["runs"]]


@pytest.mark.parametrize("sort", ["-createdAt", "createdAt", "-elapsedMs", "elapsedMs"])
def test_pages_have_every_run_once_although_runs_are_submitted_in_between(
    api: httpx.Client, make_run: Callable[..., Run], sort: str
) -> None:
    for n in range(7):  # pairs of equal times and durations
        make_run(id=f"run_{n}", created_at=NOW - timedelta(seconds=n // 2), active_ms=n // 2)
    expected, listed = ids_of(api, sort=sort), []
    params: dict[str, Any] = {"sort": sort, "limit": 2}
    while True:
        page = json_of(api.get(RUNS, params=params))
        listed += [run["runId"] for run in page["runs"]]
        if not page["hasMore"]:
            break
        make_run(created_at=NOW + timedelta(seconds=9))
        params["cursor"] = page["nextCursor"]
    assert [run_id for run_id in listed if run_id in expected] == expected
    assert len(set(listed)) == len(listed)


def test_a_list_is_sorted_by_duration(api: httpx.Client, make_run: Callable[..., Run]) -> None:
    for name, active_ms in (("a", 5), ("b", 9), ("c", 7)):
        make_run(id=f"run_{name}", status="succeeded", active_ms=active_ms)
    assert ids_of(api, sort="-elapsedMs") == ["run_b", "run_c", "run_a"]
    assert ids_of(api, sort="elapsedMs") == ["run_a", "run_c", "run_b"]


def test_a_list_is_limited_to_a_time_from_its_start_to_before_its_end(
    api: httpx.Client, make_run: Callable[..., Run]
) -> None:
    ms = int(NOW.timestamp() * 1000)
    at = datetime.fromtimestamp(ms / 1000, UTC)
    run = make_run(created_at=at)
    assert ids_of(api, since=ms) == ids_of(api, until=ms + 1) == [run.id]
    assert ids_of(api, since=ms + 1) == ids_of(api, until=ms) == []


def test_labels_and_subject_of_a_submit_are_in_every_answer(api: httpx.Client) -> None:
    labels = {"env": "prod", "team": "搜索"}
    run_id = json_of(api.post(RUNS, json=submission(labels=labels)), 202)["runId"]
    shown = json_of(api.get(f"{RUNS}/{run_id}"))
    assert (shown["subject"], shown["labels"]) == ("Stepwise", labels)
    assert ids_of(api, label="team=搜索,env=prod") == ids_of(api, q="搜索") == [run_id]
    assert ids_of(api, label="env=test") == []
    message = run_message("run.queued", Run.objects.get(id=run_id))
    assert '"subject":"Stepwise","labels":{"env":"prod"' in message.decode()


def test_a_retry_has_the_labels_of_the_run(api: httpx.Client) -> None:
    run_id = json_of(api.post(RUNS, json=submission(labels={"env": "prod"})), 202)["runId"]
    api.post(f"{RUNS}/{run_id}/cancel")
    retry = json_of(api.post(f"{RUNS}/{run_id}/retry"), 202)
    assert json_of(api.get(f"{RUNS}/{retry['runId']}"))["labels"] == {"env": "prod"}


def test_runs_that_wait_for_a_person_are_listed_alone(
    api: httpx.Client, make_run: Callable[..., Run]
) -> None:
    make_run()
    waiting = make_run(status="running", ready=False, waiting_for={"type": "answer"})
    assert ids_of(api, waiting="true") == [waiting.id]
    assert waiting.id not in ids_of(api, waiting="false")


def test_a_cursor_of_another_order_is_refused_with_the_order_it_has(
    api: httpx.Client, make_run: Callable[..., Run]
) -> None:
    make_run(), make_run()
    cursor = json_of(api.get(RUNS, params={"limit": 1}))["nextCursor"]
    problem = refusal(api.get(RUNS, params={"cursor": cursor, "sort": "elapsedMs"}), 400)
    assert "sort=-createdAt" in problem["message"]
