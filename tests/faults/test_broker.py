"""The broker only carries wake-up messages: no broker failure loses a run or executes it twice."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runs.models import Run, RunStep
from runs.queue.wakeups import SHARED_QUEUE
from tests.faults.installation import ROOT, FaultInstallation, send_wakeup
from tests.services import free_port

SUBMIT = """
import time
import django; django.setup()
from decisions.identity.principals import local_principal
from runs.submission.services import submit_run
for _ in range(3):
    start_time = time.monotonic()
    submit_run(principal=local_principal(), template_id="test_stepwise", inputs={"do": ["ok"]},
               options={"mode": "async"})
    print(time.monotonic() - start_time)
"""


@contextmanager
def silent_server() -> Iterator[int]:
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def submit_in_process(installation: FaultInstallation, redis_url: str) -> list[float]:
    """Submit three runs from a separate process; return how long each submit took."""
    env = {**installation.env, "REDIS_URL": redis_url, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-c", SUBMIT],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return [float(line) for line in result.stdout.split()]


def test_a_submit_stays_fast_while_the_broker_is_down(installation: FaultInstallation) -> None:
    first_s, *later_s = submit_in_process(installation, f"redis://127.0.0.1:{free_port()}/0")
    assert first_s < 20  # includes loading the client, on a machine that may be busy
    assert max(later_s) < 5
    assert Run.objects.filter(status="queued").count() == 3
    installation.start("scheduler")
    installation.workers(1)
    installation.check_invariants()


def test_a_submit_stays_fast_while_the_broker_hangs(installation: FaultInstallation) -> None:
    with silent_server() as port:
        took_s = submit_in_process(installation, f"redis://127.0.0.1:{port}/0")
    assert max(took_s) < 20  # a few time-outs of the broker, on a machine that may be busy
    assert Run.objects.filter(status="queued").count() == 3
    installation.start("scheduler")
    installation.workers(1)
    installation.check_invariants()


def test_duplicate_late_and_invalid_messages_have_no_effect(
    installation: FaultInstallation, tmp_path: Path
) -> None:
    installation.start("scheduler")
    installation.workers(2)
    ids = [installation.submit(f"touch:{tmp_path / str(n)}") for n in range(4)]
    for run_id in ids * 5:
        send_wakeup(SHARED_QUEUE, run_id)
    runs = [installation.wait_for_end(run_id) for run_id in ids]
    for run_id in [*ids, "run_of_nobody", "", "x" * 5000]:
        send_wakeup(SHARED_QUEUE, run_id)
    installation.check_invariants()
    assert {run.status for run in runs} == {"succeeded"}
    assert all((tmp_path / str(n)).read_text() == "x" for n in range(4))
    assert set(RunStep.objects.values_list("attempts", flat=True)) == {1}


def test_a_worker_finds_the_runs_whose_wakeups_are_lost(installation: FaultInstallation) -> None:
    installation.workers(1)
    installation.redis.stop()
    installation.redis.forget()
    ids = [installation.submit() for _ in range(3)]
    installation.redis.start()
    assert {installation.wait_for_end(run_id).status for run_id in ids} == {"succeeded"}
    installation.check_invariants()


@pytest.mark.slow
def test_a_broker_that_restarts_empty_loses_no_run(
    installation: FaultInstallation, tmp_path: Path
) -> None:
    installation.start("scheduler")
    installation.workers(2)
    failpoint_file = installation.arm_failpoint("step_over", "wait")
    running = [installation.submit("ok", f"touch:{tmp_path / str(n)}") for n in range(5)]
    installation.wait_until(lambda: RunStep.objects.filter(status="started").count() == 5)
    queued = [installation.submit() for _ in range(200)]
    installation.redis.kill()
    installation.redis.forget()
    time.sleep(1)
    assert Run.objects.filter(status="queued").count() == 200
    failpoint_file.unlink()
    installation.redis.start()
    installation.wait_until(
        lambda: not Run.objects.filter(ended_at__isnull=True).exists(), seconds=120
    )
    assert set(Run.objects.values_list("status", "times_lost")) == {("succeeded", 0)}
    assert len({*running, *queued}) == Run.objects.count() == 205
    assert all((tmp_path / str(n)).read_text() == "x" for n in range(5))
    installation.check_invariants()


def test_workers_claim_runs_without_a_broker(installation: FaultInstallation) -> None:
    installation.start("scheduler")
    (worker,) = installation.workers(1)
    installation.redis.stop()
    run = installation.wait_for_end(installation.submit())
    assert run.status == "succeeded"
    worker.send_signal(signal.SIGTERM)
    worker.wait(20)
    installation.redis.start()
    installation.workers(1)
    installation.check_invariants()
