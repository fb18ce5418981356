"""Workers execute runs whatever Redis does, also when they start then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from redis import Redis

from runs.models import RunStep
from tests.faults.installation import FaultInstallation
from tests.support.installation.broken_redis import KINDS, REFUSED, broken_redis

FEW = (REFUSED, "no number")


@pytest.mark.parametrize("kind", FEW)
def test_a_worker_that_starts_without_a_working_redis_executes_runs_at_once(
    installation: FaultInstallation, tmp_path: Path, kind: str
) -> None:
    start_and_execute(installation, tmp_path, kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in FEW])
def test_a_worker_that_starts_with_another_broken_redis_does_so_too(
    installation: FaultInstallation, tmp_path: Path, kind: str
) -> None:
    start_and_execute(installation, tmp_path, kind)


def start_and_execute(installation: FaultInstallation, tmp_path: Path, kind: str) -> None:
    """All at the same time: it needs no wake-up for the next one either."""
    gate = tmp_path / "gate"
    with broken_redis(kind) as url:
        (worker,) = installation.workers(1, REDIS_URL=url)
        ids = [installation.submit(f"until:{gate}") for _ in range(3)]
        installation.wait_until(
            lambda: RunStep.objects.filter(status="started").count() == 3, seconds=20
        )
        gate.touch()
        assert {installation.wait_for_end(run_id).status for run_id in ids} == {"succeeded"}
        assert worker.is_running


@contextmanager
def replica(redis: Redis) -> Iterator[None]:
    redis.replicaof("127.0.0.1", "1")
    yield
    redis.replicaof("NO", "ONE")


@contextmanager
def full(redis: Redis) -> Iterator[None]:
    redis.config_set("maxmemory", "1")
    yield
    redis.config_set("maxmemory", "0")


def test_a_worker_survives_a_redis_that_becomes_a_replica_and_receives_wakeups_afterwards(
    installation: FaultInstallation,
) -> None:
    execute_during(installation, replica)


@pytest.mark.slow
def test_a_worker_survives_a_redis_that_is_full_and_receives_wakeups_afterwards(
    installation: FaultInstallation,
) -> None:
    execute_during(installation, full)


def execute_during(
    installation: FaultInstallation, fault: Callable[[Redis], AbstractContextManager[None]]
) -> None:
    installation.start("scheduler")
    (worker,) = installation.workers(1)
    before = installation.worker_of(worker)
    with Redis.from_url(installation.redis.url) as redis:
        with fault(redis):
            during = [installation.submit() for _ in range(3)]
            assert {installation.wait_for_end(run_id).status for run_id in during} == {"succeeded"}
        back_at = time.monotonic()
        installation.wait_until(
            lambda: "is available again" in worker.log.read_text(), "no recovery", seconds=10
        )
        assert time.monotonic() - back_at < 10
    assert installation.worker_of(worker) == before
    installation.check_invariants()
