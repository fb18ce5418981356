"""The stack detects a worker that is alive but does not work: by its heartbeat and by wake-ups
that it does not receive.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from django.db.models import F

from decisions.foundation.infra.processes import process_identity
from runs.models import Worker
from runs.operations.home import redis_server
from runs.operations.supervision import liveness
from runs.operations.supervision.liveness import WorkerLiveness, WorkerProbe

pytestmark = pytest.mark.django_db(transaction=True)


def _register(process: str) -> None:
    Worker.objects.create(
        id="wrk_1", process=process, host="here", beat=7, started_at=datetime.now(UTC)
    )


def test_a_worker_is_identified_by_its_process() -> None:
    assert not WorkerProbe().is_registered(os.getpid())
    _register(process_identity())
    assert WorkerProbe().heartbeat(os.getpid()) == ("wrk_1", 7)
    assert not WorkerProbe().is_registered(os.getpid() + 1)


def test_another_process_with_the_same_pid_is_a_different_worker() -> None:
    _register(process_identity() + "9")
    assert not WorkerProbe().is_registered(os.getpid())


def test_a_lost_worker_is_not_registered() -> None:
    _register(process_identity())
    Worker.objects.update(lost_at=datetime.now(UTC))
    assert not WorkerProbe().is_registered(os.getpid())


def test_a_stopped_heartbeat_is_unhealthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "HEARTBEAT_TIMEOUT_S", 0.0)
    _register(process_identity())
    watch = WorkerLiveness(WorkerProbe())
    assert watch.unhealthy_reason(os.getpid()) is None
    assert "sent no heartbeat" in (watch.unhealthy_reason(os.getpid()) or "")
    Worker.objects.update(beat=F("beat") + 1)
    assert watch.unhealthy_reason(os.getpid()) is None


def test_a_lost_worker_that_does_not_register_again_is_unhealthy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(liveness, "HEARTBEAT_TIMEOUT_S", 0.0)
    _register(process_identity())
    watch = WorkerLiveness(WorkerProbe())
    assert watch.unhealthy_reason(os.getpid()) is None
    Worker.objects.update(lost_at=datetime.now(UTC))
    assert watch.unhealthy_reason(os.getpid()) is None
    assert "sent no heartbeat" in (watch.unhealthy_reason(os.getpid()) or "")


@pytest.fixture
def socket_path(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """A private server on a Unix socket, as the stack runs it."""
    settings.REDIS_SOCKET = tmp_path / "r.sock"
    binary = redis_server.find_binary()
    assert binary
    command = redis_server.command(binary, socket_path=settings.REDIS_SOCKET, folder=tmp_path)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        while not redis_server.is_responding(settings.REDIS_SOCKET):
            time.sleep(0.01)
        yield settings.REDIS_SOCKET
        server.kill()


def test_a_wakeup_that_no_worker_receives_is_unhealthy(
    monkeypatch: pytest.MonkeyPatch, socket_path: Path, settings: Any
) -> None:
    monkeypatch.setattr(liveness, "WAKEUP_TIMEOUT_S", 0.0)
    celery_app = Celery(broker=f"redis+socket://{socket_path}?virtual_host=0")
    celery_app.conf.broker_transport_options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    celery_app.send_task("runs.work", kwargs={"run_id": "run_1"}, queue="runs", retry=False)
    monkeypatch.setattr(liveness, "HEARTBEAT_TIMEOUT_S", 1000.0)
    watch = WorkerLiveness(WorkerProbe())
    assert watch.unhealthy_reason(1) is None
    assert "wake-up message" in (watch.unhealthy_reason(1) or "")
    redis_server.send_command(socket_path, b"FLUSHALL")
    assert watch.unhealthy_reason(1) is None
    assert watch.unhealthy_reason(1) is None
