"""The public routes (health and documentation) and what they do not reveal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from django.db.utils import OperationalError

from config import health
from decisions.audit import backlog, checkpoints
from decisions.audit.record import AuditEvent, record
from decisions.audit.sealer import Sealer
from decisions.models import AuditEntry
from runs.models import Worker
from runs.operations.health.checks import check_audit
from runs.streaming.hub import Hub
from runs.worker.worker import WorkerProcess
from tests.support.audit.audit_attacks import attack
from tests.support.rest.rest import json_of


def parts(response: httpx.Response, status: int) -> dict[str, Any]:
    answer = json_of(response, status)
    assert answer["ready"] is (status == 200)
    found: dict[str, Any] = answer["parts"]
    assert set(found) == {"database", "redis", "worker", "audit", "events"}
    return found


def test_the_liveness_route_answers_without_checking_dependencies(
    anonymous: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*args: object, **kwargs: object) -> None:
        raise AssertionError("a dependency was checked")

    monkeypatch.setattr("decisions.rest_base.view.in_thread", fail)
    assert json_of(anonymous.get("/healthz")) == {"status": "ok"}


def test_an_installation_with_a_live_worker_is_ready(
    anonymous: httpx.Client, worker: WorkerProcess
) -> None:
    assert all(part["ok"] for part in parts(anonymous.get("/readyz"), 200).values())


def test_an_installation_without_a_worker_is_not_ready_and_says_what_to_do(
    anonymous: httpx.Client,
) -> None:
    found = parts(anonymous.get("/readyz"), 503)
    assert (found["database"]["ok"], found["redis"]["ok"]) == (True, True)
    assert "manage.py worker" in found["worker"]["reason"]


@pytest.mark.usefixtures("worker")
def test_audit_rows_without_a_seal_for_over_a_minute_are_reported(
    anonymous: httpx.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        checkpoints, "checkpoint_folder", lambda: tmp_path
    )  # without those of others
    record(AuditEvent("run.started", "local", "run", "run_1", "ten_1", "ws_1"))
    parts(anonymous.get("/readyz"), 200)
    assert check_audit().verdict == "ok"
    monkeypatch.setattr(backlog, "LATE_S", 0.0)
    found = parts(anonymous.get("/readyz"), 503)["audit"]
    assert found["reason"].endswith(
        "Start a scheduler: `manage.py scheduler`. If one runs, see `manage.py verify_audit`."
    )
    assert check_audit().verdict == "bad"
    Sealer().seal_all()
    parts(anonymous.get("/readyz"), 200)


@pytest.mark.usefixtures("worker")
def test_a_row_that_the_sealer_refuses_stays_reported(
    anonymous: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its id is far below those around the head of the chain."""
    record(AuditEvent("run.started", "local", "run", "run_1", "ten_1", "ws_1"))
    Sealer().seal_all()
    row = AuditEntry.objects.latest("id").id
    attack("INSERT INTO {rows} (id, {copied}) SELECT -5, {forged} FROM {rows}", id=row)
    Sealer().look_back()
    Sealer().seal_all()
    monkeypatch.setattr(backlog, "LATE_S", 0.0)
    reason = parts(anonymous.get("/readyz"), 503)["audit"]["reason"]
    assert reason.startswith("1 audit row has no seal, the oldest for ")


def test_a_worker_whose_heartbeat_stops_is_not_live(
    anonymous: httpx.Client, worker: WorkerProcess, settings: Any
) -> None:
    settings.LEASE_LOST_S = 30
    Worker.objects.update(process="unknown::1:", beat=5)
    parts(anonymous.get("/readyz"), 200)
    settings.LEASE_LOST_S = 0
    Worker.objects.update(beat=5)
    parts(anonymous.get("/readyz"), 503)


@pytest.mark.usefixtures("worker")
def test_an_unavailable_redis_is_reported_without_its_address(
    anonymous: httpx.Client, settings: Any
) -> None:
    settings.REDIS_URL = "redis://:hunter2@127.0.0.1:1/0"
    response = anonymous.get("/readyz")
    assert "REDIS_URL" in parts(response, 503)["redis"]["reason"]
    assert "hunter2" not in response.text
    assert "127.0.0.1" not in response.text


@pytest.mark.usefixtures("worker")
def test_the_text_of_a_drivers_error_is_not_shown(
    anonymous: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> bool:
        raise OSError("db.internal:5432 refused hunter2")

    monkeypatch.setattr(health, "takes_writes", refuse)
    response = anonymous.get("/readyz")
    assert parts(response, 503)["database"]["reason"].startswith("OSError. ")
    assert "db.internal" not in response.text


@pytest.mark.usefixtures("worker")
def test_a_hanging_check_times_out(
    anonymous: httpx.Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "CHECK_S", 0.2)
    settings.REDIS_URL = "redis://192.0.2.1:6379/0"  # an address that never answers
    assert not parts(anonymous.get("/readyz"), 503)["redis"]["ok"]


@pytest.mark.usefixtures("worker")
def test_failed_event_streams_of_the_process_are_reported(
    anonymous: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hub, "fault", lambda self: "The loop of event streams failed.")
    assert not parts(anonymous.get("/readyz"), 503)["events"]["ok"]


def test_an_unavailable_database_is_reported(
    anonymous: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def raise_error(*args: object) -> None:
        raise OperationalError("could not connect to 10.1.2.3 as admin")

    monkeypatch.setattr(health, "in_thread", raise_error)
    response = anonymous.get("/readyz")
    assert not parts(response, 503)["database"]["ok"]
    assert "10.1.2.3" not in response.text


def test_the_documentation_loads_nothing_from_other_hosts(anonymous: httpx.Client) -> None:
    page = anonymous.get("/api/docs")
    assert page.status_code == 200
    assert "://" not in page.text.replace("http://www.w3.org", "")
    script = anonymous.get("/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js")
    assert script.status_code == 200
    assert "max-age" in script.headers["cache-control"]
    etag = {"If-None-Match": script.headers["etag"]}
    assert anonymous.get(script.url.path, headers=etag).status_code == 304


@pytest.mark.parametrize(
    "path",
    [
        "/static/nothing.css",
        "/static/",
        "/static/..%2f..%2fapps.py",
        "/static/admin/../apps.py",
        "/static/%00",
        "/static/admin",
        "/static//etc/passwd",
        "/static/" + "x" * 5000,
    ],
)
def test_only_static_files_are_served_as_static_files(anonymous: httpx.Client, path: str) -> None:
    assert anonymous.get(path).status_code == 404


def test_static_files_are_read_only(anonymous: httpx.Client) -> None:
    assert anonymous.post("/static/admin/css/base.css").status_code == 405


@pytest.mark.parametrize("path", ["/healthz", "/readyz/web"])
@pytest.mark.parametrize("host", ["10.1.2.3:8000", "[fd00::7]:8000", "10.1.2.3"])
def test_a_probe_may_name_a_pod_by_its_address_at_the_health_routes(
    anonymous: httpx.Client, path: str, host: str
) -> None:
    json_of(anonymous.get(path, headers={"Host": host}), 200)


@pytest.mark.parametrize("host", ["pod.internal", "10.1.2.3.evil.example", "[fd00::7", "1:2:3"])
def test_other_hosts_and_other_routes_are_refused_as_before(
    anonymous: httpx.Client, host: str
) -> None:
    assert anonymous.get("/readyz/web", headers={"Host": host}).status_code == 400
    assert anonymous.get("/api/v1/templates", headers={"Host": "10.1.2.3"}).status_code == 400


def test_the_web_server_is_ready_without_redis_and_workers_but_not_without_its_database(
    anonymous: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts_of_web = json_of(anonymous.get("/readyz/web"), 200)["parts"]
    assert set(parts_of_web) == {"database", "events"}
    assert anonymous.get("/readyz").status_code == 503  # no worker
    monkeypatch.setattr(health, "takes_writes", lambda: False)
    assert json_of(anonymous.get("/readyz/web"), 503)["parts"]["database"]["ok"] is False
