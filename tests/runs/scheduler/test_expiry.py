"""Runs, keys and artifacts until they expire, as the API and the admin site see them. The tests
advance time by moving the timestamps that it is counted from.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from django.test import Client, override_settings

from artifacts.expiry import collect_blobs, expire_artifacts
from artifacts.models import Artifact
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.models import Run
from runs.scheduler.retention import delete_old_runs, hide_runs
from runs.submission.cancel import cancel_run
from tests.support.rest.rest import json_of, refusal, submission

MakeArtifact = Callable[..., str]
Submit = Callable[..., str]


def advance_time(run_id: str, **time: float) -> None:
    """Move the end of a run, and all timestamps that depend on it, back by this time."""
    run = Run.objects.get(id=run_id)
    assert run.ended_at is not None
    elapsed = timedelta(**time)
    Run.objects.filter(id=run_id).update(ended_at=run.ended_at - elapsed)
    for row in Artifact.objects.filter(run_id=run_id):
        assert row.expires_at is not None
        Artifact.objects.filter(id=row.id).update(expires_at=row.expires_at - elapsed)


@pytest.fixture
def ended_run(submit: Submit, principal: Principal, make_artifact: MakeArtifact) -> str:
    """A run that was just canceled and has stored an artifact."""
    run_id = submit()
    make_artifact(b"bytes", run_id=run_id)
    cancel_run(principal=principal, run_id=run_id)
    return run_id


@pytest.mark.parametrize("hidden", [False, True])
def test_an_expired_run_is_unknown_to_every_api_call(
    api: httpx.Client, ended_run: str, hidden: bool
) -> None:
    url = f"/api/v1/runs/{ended_run}"
    advance_time(ended_run, minutes=29, seconds=50)
    assert json_of(api.get(url))["status"] == "canceled"
    assert json_of(api.get("/api/v1/runs"))["total"] == 1
    advance_time(ended_run, seconds=10)
    if hidden:
        assert hide_runs() == 1
    for method, path in (
        ("GET", ""),
        ("GET", "/wait"),
        ("GET", "/events"),
        ("POST", "/cancel"),
        ("POST", "/retry"),
        ("POST", "/answer"),
    ):
        body = {"json": {"answer": "x"} if path == "/answer" else {}} if method == "POST" else {}
        answer = refusal(api.request(method, url + path, **body), 404)  # type: ignore[arg-type]
        assert answer["errorCode"] == "RUN_NOT_FOUND", path
    assert json_of(api.get("/api/v1/runs")) == {
        "runs": [],
        "total": 0,
        "hasMore": False,
        "nextCursor": None,
    }


def test_the_admin_displays_a_run_until_the_end_of_its_retention(
    superuser_client: Client, ended_run: str
) -> None:
    page = f"/admin/runs/run/{ended_run}/change/"
    advance_time(ended_run, days=29, hours=23)
    assert (hide_runs(), delete_old_runs()) == (1, 0)
    assert superuser_client.get(page).status_code == 200
    assert ended_run in superuser_client.get("/admin/runs/run/").content.decode()
    advance_time(ended_run, hours=1)
    assert delete_old_runs() == 1
    assert superuser_client.get(page).status_code == 404


def test_an_operator_can_retry_a_run_that_has_expired_for_the_api(
    superuser_client: Client, ended_run: str
) -> None:
    advance_time(ended_run, days=2)
    hide_runs()
    superuser_client.post(f"/admin/runs/run/{ended_run}/retry/")
    assert Run.objects.get(retry_of=ended_run).status == "queued"


def test_a_key_is_in_use_while_its_run_exists_and_free_afterwards(
    api: httpx.Client, principal: Principal
) -> None:
    body = submission(idempotencyKey="k")
    first = json_of(api.post("/api/v1/runs", json=body), 202)["runId"]
    assert json_of(api.post(f"/api/v1/runs/{first}/cancel", json={}))["success"]
    advance_time(first, minutes=29)
    assert json_of(api.post("/api/v1/runs", json=body))["runId"] == first
    advance_time(first, minutes=1)
    second = json_of(api.post("/api/v1/runs", json=body), 202)
    assert second["runId"] != first
    assert not second["deduplicated"]


@pytest.mark.parametrize("swept", [False, True])
def test_an_artifact_is_readable_for_a_day_and_then_answers_expired(
    api: httpx.Client, ended_run: str, swept: bool
) -> None:
    row = Artifact.objects.get(run_id=ended_run)
    advance_time(ended_run, hours=23, minutes=59)
    assert json_of(api.get(f"/api/v1/artifacts/{row.id}"))["data"] == "bytes"
    advance_time(ended_run, minutes=1)
    if swept:
        assert expire_artifacts() == 1
    for path in ("", "/content"):
        expired = refusal(api.get(f"/api/v1/artifacts/{row.id}{path}"), 410)
        assert (expired["errorCode"], expired["details"]["runId"]) == (
            "ARTIFACT_EXPIRED",
            ended_run,
        )
    listed = json_of(api.get(f"/api/v1/runs/{ended_run}/artifacts"))["artifacts"]
    assert [(artifact["artifactId"], artifact["expired"]) for artifact in listed] == [
        (row.id, True)
    ]


@override_settings(RUN_RETENTION_DAYS=1, ARTIFACT_TTL_MS=7 * 24 * 3600 * 1000)
def test_a_removed_run_leaves_tombstones_and_its_audit_events(
    api: httpx.Client, submit: Submit, principal: Principal, make_artifact: MakeArtifact
) -> None:
    run_id = submit()
    artifact_id = make_artifact(b"stored longer than its run", run_id=run_id)
    cancel_run(principal=principal, run_id=run_id)
    advance_time(run_id, days=1)
    assert delete_old_runs() == 1
    expired = refusal(api.get(f"/api/v1/artifacts/{artifact_id}"), 410)
    assert expired["errorCode"] == "ARTIFACT_EXPIRED"
    assert AuditEntry.objects.get(action="artifact.expired").resource_id == artifact_id
    assert AuditEntry.objects.filter(resource_id=run_id).count() == 2
    assert not Run.objects.exists()
    assert collect_blobs() == 0  # its bytes are recent; they are deleted an hour later


@override_settings(RUN_RETENTION_DAYS=0)
def test_one_round_hides_and_removes_more_runs_than_one_batch(
    make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.scheduler.retention.BATCH_SIZE", 3)
    monkeypatch.setattr("decisions.foundation.infra.batches.BATCH_SIZE", 3)
    long_ago: dict[str, Any] = {"ended_at": datetime.now(UTC) - timedelta(hours=1)}
    for _ in range(7):
        make_run(status="succeeded", **long_ago)
    assert (hide_runs(), delete_old_runs(), Run.objects.count()) == (7, 7, 0)
