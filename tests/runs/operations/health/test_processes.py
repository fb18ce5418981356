"""Running, hung, lost and stopped processes are told apart, by the database's clock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from decisions.foundation.infra.processes import process_identity
from runs.models import ServiceBeat, Worker
from runs.operations.health import web_probe
from runs.operations.health.checks import check_processes
from runs.operations.health.processes import ProcessState, list_processes
from runs.operations.health.service_heartbeat import ServiceHeartbeat
from runs.operations.health.web_probe import describe_web_fault
from runs.worker.worker import WorkerProcess

pytestmark = pytest.mark.django_db(transaction=True)
HERE = process_identity()
PROCESSES = {
    "here": HERE,
    "elsewhere": "boot:1:2:3",
    "gone": HERE.rpartition(":")[0] + ":1",  # this process id, but of an earlier process
}
LATE, FRESH = Now() - timedelta(seconds=40), Now() - timedelta(seconds=5)


def worker_row(process: str, beat_at: Any, **columns: Any) -> ProcessState:
    started_at = datetime(2020, 1, 1, tzinfo=UTC)  # the machine's clock plays no part
    Worker.objects.create(
        id="w",
        process=PROCESSES[process],
        host="h",
        started_at=started_at,
        beat_at=beat_at,
        **columns,
    )
    (found,) = list_processes()
    return found.state


@pytest.mark.parametrize(
    ("process", "beat_at", "columns", "state"),
    [
        ("elsewhere", FRESH, {}, "running"),
        ("elsewhere", LATE, {}, "hung"),
        ("here", LATE, {"lost_at": Now()}, "hung"),
        ("elsewhere", LATE, {"lost_at": Now()}, "lost"),
        ("gone", FRESH, {}, "lost"),
        ("here", FRESH, {"lost_at": Now(), "stopped_at": Now()}, "stopped"),
    ],
)
def test_the_state_of_a_process_is_told(
    process: str, beat_at: Any, columns: dict[str, Any], state: str
) -> None:
    assert worker_row(process, beat_at, **columns) == state


def test_a_worker_that_registered_again_is_shown_once() -> None:
    assert worker_row("here", LATE, lost_at=Now()) == ProcessState.HUNG
    now = datetime.now(UTC)
    Worker.objects.create(id="w2", process=HERE, host="h", started_at=now, beat_at=Now())
    assert [(one.id, one.state) for one in list_processes()] == [("w2", "running")]


def test_a_beat_of_an_idle_worker_and_of_a_service_is_one_statement(worker: WorkerProcess) -> None:
    heartbeat = ServiceHeartbeat("scheduler")
    heartbeat.beat()
    for beat in (worker.heartbeat.beat, heartbeat.beat):
        with CaptureQueriesContext(connection) as statements:
            beat()
        assert len(statements) == 1
    assert {(one.kind, one.state) for one in list_processes()} == {("scheduler", "running")}


def test_a_service_that_stops_says_so() -> None:
    heartbeat = ServiceHeartbeat("web")
    heartbeat.start()
    heartbeat.stop()
    assert ServiceBeat.objects.get().stopped_at is not None
    assert [one.state for one in list_processes()] == [ProcessState.STOPPED]


def test_doctor_names_the_process_that_hangs() -> None:
    ServiceHeartbeat("scheduler").beat()
    assert (check_processes().verdict, check_processes().what) == ("ok", "1 scheduler")
    ServiceBeat.objects.update(beat_at=LATE)
    found = check_processes()
    assert found.verdict == "bad"
    assert "is hung: no heartbeat for 40 s" in found.what


def test_a_web_process_that_accepts_and_does_not_answer_is_hung(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_probe, "PROBE_S", 0.2)
    release = threading.Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer once the test allows it."""
            release.wait(10)
            self.send_response(200)
            self.end_headers()

        log_message: Callable[..., None] = lambda *_: None

    with HTTPServer(("127.0.0.1", 0), Slow) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert describe_web_fault(url) == "hung: no answer within 0 s"
        release.set()
        assert describe_web_fault(url) is None
        server.shutdown()
    assert str(describe_web_fault(url)).startswith("does not answer")
