"""Runs over REST: submit, read, wait, cancel, retry, answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from artifacts.models import Artifact
from decisions.identity.principals import Principal
from runs.models import Run
from tests.support.rest.rest import json_of, refusal, submission


def test_an_async_submit_answers_202_with_the_handle_and_the_queue_position(
    api: httpx.Client,
) -> None:
    response = api.post("/api/v1/runs", json=submission())
    handle = json_of(response, 202)
    assert set(handle) == {"runId", "sessionId", "status", "mode", "deduplicated"}
    assert (handle["status"], handle["mode"], handle["deduplicated"]) == ("queued", "async", False)
    assert json_of(api.get(response.headers["location"]))["runId"] == handle["runId"]


def test_a_repeated_key_answers_200_with_the_first_run(api: httpx.Client) -> None:
    call = submission(idempotencyKey="once")
    first, second = (api.post("/api/v1/runs", json=call) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 200)
    assert second.json()["runId"] == first.json()["runId"]
    assert (second.json()["deduplicated"], second.json()["inputsMatch"]) == (True, True)


@pytest.mark.slow
def test_a_sync_submit_without_a_worker_returns_the_run_still_queued(api: httpx.Client) -> None:
    run = json_of(api.post("/api/v1/runs", json=submission(mode="sync", timeoutMs=1)), 202)
    assert run["status"] == "queued"
    assert run["queue"]["position"] == 1


def test_a_page_past_the_end_is_empty_and_has_the_total(
    api: httpx.Client, make_run: Callable[..., Run]
) -> None:
    make_run()
    page = json_of(api.get("/api/v1/runs", params={"offset": 10}))
    assert (page["runs"], page["total"], page["hasMore"]) == ([], 1, False)


def test_a_wait_returns_when_the_run_ends(api: httpx.Client, submit: Callable[..., str]) -> None:
    run_id = submit("ok")
    timer = threading.Timer(0.5, lambda: api.post(f"/api/v1/runs/{run_id}/cancel"))
    timer.start()
    started = time.monotonic()
    run = json_of(api.get(f"/api/v1/runs/{run_id}/wait", params={"waitMs": 30_000}))
    assert run["status"] == "canceled"
    assert 0.4 < time.monotonic() - started < 10
    timer.join()


def test_a_canceled_run_is_retried_once(api: httpx.Client, submit: Callable[..., str]) -> None:
    run_id = submit()
    api.post(f"/api/v1/runs/{run_id}/cancel")
    first = api.post(f"/api/v1/runs/{run_id}/retry")
    second = api.post(f"/api/v1/runs/{run_id}/retry")
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.json()["runId"] == second.json()["runId"]
    assert json_of(api.get(f"/api/v1/runs/{first.json()['runId']}"))["retryOf"] == run_id


def test_an_answer_resumes_a_suspended_run(api: httpx.Client, make_run: Callable[..., Run]) -> None:
    run = make_run(status="running", ready=False, waiting_for={"type": "answer", "question": "?"})
    answered = json_of(api.post(f"/api/v1/runs/{run.id}/answer", json={"answer": "yes"}))
    assert answered["success"] is True
    assert Run.objects.get(id=run.id).ready
    assert "waitingFor" not in json_of(api.get(f"/api/v1/runs/{run.id}"))
    again = refusal(api.post(f"/api/v1/runs/{run.id}/answer", json={"answer": "yes"}), 400)
    assert again["errorCode"] == "INVALID_PARAMETER"


def test_artifacts_of_a_run_are_listed_with_the_whole_result_first(
    api: httpx.Client, make_run: Callable[..., Run], make_artifact: Callable[..., str]
) -> None:
    run = make_run(status="succeeded")
    page = make_artifact(b"page", run_id=run.id)
    result = make_artifact(b"{}", kind="result", mime_type="application/json", run_id=run.id)
    listed = json_of(api.get(f"/api/v1/runs/{run.id}/artifacts"))["artifacts"]
    assert [artifact["artifactId"] for artifact in listed] == [result, page]
    assert listed[0]["sizeBytes"] == 2


def test_artifacts_are_listed_after_their_run_has_expired(
    api: httpx.Client,
    make_run: Callable[..., Run],
    make_artifact: Callable[..., str],
    settings: Any,
) -> None:
    run = make_run(status="succeeded")
    artifact_id = make_artifact(b"bytes", run_id=run.id)
    settings.RUN_TTL_MS = 0
    refusal(api.get(f"/api/v1/runs/{run.id}"), 404)
    listed = json_of(api.get(f"/api/v1/runs/{run.id}/artifacts"))["artifacts"]
    assert [artifact["artifactId"] for artifact in listed] == [artifact_id]
    Artifact.objects.all().delete()
    refusal(api.get(f"/api/v1/runs/{run.id}/artifacts"), 404)


def test_a_list_contains_no_run_of_another_workspace(
    api: httpx.Client, make_run: Callable[..., Run], outsider: Principal
) -> None:
    run = make_run()
    make_run(workspace_id=outsider.workspace_id)
    page = json_of(api.get("/api/v1/runs"))
    assert ([one["runId"] for one in page["runs"]], page["total"]) == ([run.id], 1)
