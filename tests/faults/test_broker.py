"""The broker only carries wake-up messages: no broker failure loses a run or executes it twice."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import orjson
import pytest
from redis import Redis

from decisions.identity.principals import create_token
from runs.live.channel import WORKERS_CHANNEL
from runs.models import Run, RunStep
from runs.queue.wakeups import SHARED_QUEUE
from tests.faults.installation import PREFIX, ROOT, FaultInstallation, send_wakeup
from tests.services import RedisServer, free_port

SUBMIT = """
import time
import django; django.setup()
from decisions.identity.principals import local_principal
from runs.submission.submit import submit_run
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


@pytest.mark.slow
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


def message(headers: Any = None, **fields: Any) -> bytes:
    """Return a wake-up as Celery sends it, with some fields replaced."""
    tag = str(uuid4())
    return orjson.dumps(
        {
            "body": "W1tdLCB7fSwge31d",  # [[], {}, {}]
            "content-type": "application/json",
            "content-encoding": "utf-8",
            "headers": {"task": "runs.work", "id": tag} if headers is None else headers,
            "properties": {
                "delivery_tag": tag,
                "body_encoding": "base64",
                "delivery_info": {"exchange": "", "routing_key": "runs"},
            },
            **fields,
        }
    )


HEADERS = {"task": "runs.work", "id": "1"}
INVALID_ITEMS = [
    b"hello",
    b"\xff\xfe",
    b"[" * 100_000,
    b"5",
    b"{}",
    b'{"__type__": "uuid", "__value__": 5}',
    message(properties={}),
    message(properties={"delivery_tag": "1", "delivery_info": None}),
    message(body="%"),
    message(body="e30="),
    message(**{"content-type": []}),
    message(**{"content-encoding": "no such"}),
    message(headers=[]),
    message(headers={"task": []}),
    message(headers={"task": "runs.work", "id": []}),
    *(message(headers=HEADERS | {"eta": []}) for _ in range(10)),  # more than are prefetched
    message(headers=HEADERS | {"expires": "soon"}),
    message(headers=HEADERS | {"timelimit": 5}),
    message(headers=HEADERS | {"retries": "x"}),
]


def test_a_worker_drops_items_of_its_queue_that_are_not_messages(
    installation: FaultInstallation,
) -> None:
    (worker,) = installation.workers(1)
    with Redis.from_url(installation.redis.url) as client:
        for item in INVALID_ITEMS:
            client.lpush(f"{PREFIX}{SHARED_QUEUE}", item)
        installation.wait_until(lambda: not client.llen(f"{PREFIX}{SHARED_QUEUE}"), "not read")
        assert installation.wait_for_end(installation.submit()).status == "succeeded"
        installation.wait_until(lambda: not client.hlen(f"{PREFIX}unacked"), "not acknowledged")
    logged = worker.log.read_text()
    assert "is not a message and is dropped" in logged
    assert "Connection to broker lost" not in logged


@contextmanager
def limited_to_the_prefix(redis: RedisServer) -> Iterator[Redis]:
    """Refuse all keys and channels without the installation's prefix."""
    with Redis.from_url(redis.url) as client:
        client.acl_setuser(
            "default",
            enabled=True,
            nopass=True,
            commands=["+@all"],
            reset_keys=True,
            keys=[f"{PREFIX}*"],
            reset_channels=True,
            channels=[f"{PREFIX}*"],
        )
        client.acl_log_reset()
        try:
            yield client
        finally:
            client.acl_setuser(
                "default", enabled=True, nopass=True, keys=["*"], channels=["*"], commands=["+@all"]
            )


@pytest.mark.slow
def test_all_keys_and_channels_of_a_used_installation_have_its_prefix(
    installation: FaultInstallation,
) -> None:
    port = free_port()
    web = f"http://127.0.0.1:{port}"
    with limited_to_the_prefix(installation.redis) as redis:
        installation.start("serve", "--port", str(port))
        installation.start("scheduler")
        installation.workers(1)
        headers = {"Authorization": f"Bearer {create_token(name='reader', trust='local')}"}
        installation.wait_until(lambda: not is_free(port), "the web process did not start")
        run_id = installation.submit("sleep:1")
        with (
            httpx.Client(base_url=web, headers=headers) as client,
            client.stream("GET", f"/api/v1/runs/{run_id}/events", timeout=30) as events,
        ):
            for _ in events.iter_lines():
                pass
            assert client.get("/metrics").status_code == 200
            page = client.get("/admin/login/").text
            token = re.search(r'csrfmiddlewaretoken" value="(\w+)', page)
            assert token
            form = {"username": "nobody", "password": "wrong", "csrfmiddlewaretoken": token[1]}
            assert client.post("/admin/login/", data=form).status_code == 200
        assert [(one["reason"], one["object"]) for one in redis.acl_log()] == []
        for part in ("_kombu.", "calls:", "sign-in:"):
            assert redis.keys(f"{PREFIX}{part}*")
    assert WORKERS_CHANNEL.startswith(os.environ["CONTINUITY_REDIS_PREFIX"])


def is_free(port: int) -> bool:
    """Return whether no server listens on the port."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) != 0


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
