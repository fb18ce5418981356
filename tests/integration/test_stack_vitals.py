"""A worker that lives but does not work is noticed: by its beat, by doorbells left unheard."""

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

from decisions.infra.processes import process_identity
from runs.installation.home import redis_server
from runs.installation.supervision import liveness
from runs.installation.supervision.liveness import WorkerLiveness, WorkerProbe
from runs.models import Worker

pytestmark = pytest.mark.django_db(transaction=True)


def _register(process: str) -> None:
    Worker.objects.create(
        id="wrk_1", process=process, host="here", beat=7, started_at=datetime.now(UTC)
    )


def test_a_worker_is_known_by_its_process() -> None:
    assert not WorkerProbe().is_registered(os.getpid())
    _register(process_identity())
    assert WorkerProbe().heartbeat(os.getpid()) == ("wrk_1", 7)
    assert not WorkerProbe().is_registered(os.getpid() + 1)


def test_a_worker_that_only_has_the_same_number_is_another() -> None:
    _register(process_identity() + "9")
    assert not WorkerProbe().is_registered(os.getpid())


def test_a_worker_that_was_given_up_is_not_there() -> None:
    _register(process_identity())
    Worker.objects.update(lost_at=datetime.now(UTC))
    assert not WorkerProbe().is_registered(os.getpid())


def test_a_beat_that_stands_still_is_an_ailment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness, "HEARTBEAT_TIMEOUT_S", 0.0)
    _register(process_identity())
    watch = WorkerLiveness(WorkerProbe())
    assert watch.unhealthy_reason(os.getpid()) is None
    assert "sent no heartbeat" in (watch.unhealthy_reason(os.getpid()) or "")
    Worker.objects.update(beat=F("beat") + 1)
    assert watch.unhealthy_reason(os.getpid()) is None


def test_a_worker_that_was_given_up_and_does_not_come_back_is_ill(
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
    """A private server on a socket, as the stack runs it."""
    settings.REDIS_SOCKET = tmp_path / "r.sock"
    binary = redis_server.find_binary()
    assert binary
    command = redis_server.command(binary, socket_path=settings.REDIS_SOCKET, folder=tmp_path)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        while not redis_server.is_responding(settings.REDIS_SOCKET):
            time.sleep(0.01)
        yield settings.REDIS_SOCKET
        server.kill()


def test_a_doorbell_that_nobody_takes_is_an_ailment(
    monkeypatch: pytest.MonkeyPatch, socket_path: Path, settings: Any
) -> None:
    monkeypatch.setattr(liveness, "WAKEUP_TIMEOUT_S", 0.0)
    bell = Celery(broker=f"redis+socket://{socket_path}?virtual_host=0")
    bell.conf.broker_transport_options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
    bell.send_task("runs.work", kwargs={"run_id": "run_1"}, queue="runs", retry=False)
    monkeypatch.setattr(liveness, "HEARTBEAT_TIMEOUT_S", 1000.0)
    watch = WorkerLiveness(WorkerProbe())
    assert watch.unhealthy_reason(1) is None
    assert "wake-up message" in (watch.unhealthy_reason(1) or "")
    redis_server.send_command(socket_path, b"FLUSHALL")
    assert watch.unhealthy_reason(1) is None
    assert watch.unhealthy_reason(1) is None
