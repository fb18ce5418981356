"""Measure whether one worker process keeps up with 200 calls a second to a runner, and the time of
a call.

What this means to an operator of a fleet: agents submit runs of `call_tools` whose calls add up to
200 a second, and one worker of the usual size executes them (PostgreSQL, fsync on), each call with
its policy decision, its two audit rows, its step and its events; after 20 seconds no more runs wait
than after two. At the same rate and to the same runner, the benchmark also measures a plain
persistent client, which does nothing of this, and the gateway alone. The runner is a stub, or the
reference runner with `--real`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil

from runners.gateway.client import call_runner
from runners.gateway.connections import close_pool
from runners.gateway.request import RunnerCallContext, RunnerTarget
from runners.tools.base import ToolCall
from tests.benchmarks.durable_runs import ROOT, environment, worker
from tests.benchmarks.rounds import percentiles, report
from tests.benchmarks.runner_calls import runner_process
from tests.services import DurablePostgresServer, redis_server, served
from tests.support.runners.docker_runner_process import execute_body, start_docker_runner

CALLS_PER_S, SECONDS, CALLS_PER_RUN = 200, 20, 10
OURS = "tests.benchmarks.our_runner_calls"


@contextmanager
def runner(real: bool) -> Iterator[str]:
    """Start a runner in a separate process and yield its address."""
    with ExitStack() as stack:
        if not real:
            yield stack.enter_context(runner_process())
            return
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        process = stack.enter_context(start_docker_runner(folder, "--isolation", "process"))
        yield f"http://127.0.0.1:{process.port}/execute"


async def call_at_rate(call: Callable[[], Awaitable[object]]) -> dict[str, float]:
    """Send calls at a fixed rate; return their times, and the largest number in flight at once."""
    durations: list[float] = []
    in_flight: set[asyncio.Task[None]] = set()
    max_in_flight = 0

    async def call_once() -> None:
        started = time.perf_counter()
        await call()
        durations.append((time.perf_counter() - started) * 1000)

    started = time.perf_counter()
    for number in range(CALLS_PER_S * SECONDS // 2):
        await asyncio.sleep(max(0.0, started + number / CALLS_PER_S - time.perf_counter()))
        task = asyncio.create_task(call_once())
        in_flight.add(task)
        task.add_done_callback(in_flight.discard)
        max_in_flight = max(max_in_flight, len(in_flight))
    sending_s = time.perf_counter() - started
    await asyncio.gather(*in_flight)
    return {
        **percentiles(durations),
        "sent_per_s": round(len(durations) / sending_s, 1),
        "max_in_flight": max_in_flight,
    }


def floor(endpoint: str) -> dict[str, float]:
    """Return the times of the same calls with a plain persistent client, at the same rate."""

    async def measure() -> dict[str, float]:
        async with httpx.AsyncClient() as client:

            async def call_once() -> None:
                answer = await client.post(endpoint, json=execute_body("echo", {"text": "hello"}))
                answer.raise_for_status()

            return await call_at_rate(call_once)

    return asyncio.run(measure())


def gateway(endpoint: str) -> dict[str, float]:
    """Return their times through the gateway alone: one client in one process."""
    target = RunnerTarget("t", "t", "w", endpoint)

    async def call_once() -> None:
        ctx = RunnerCallContext("r", "s", "local", "t", time.monotonic() + 60, lambda update: None)
        assert (await call_runner(ToolCall("echo", {"text": "hello"}), ctx, target)).ok

    async def measure() -> dict[str, float]:
        try:
            return await call_at_rate(call_once)
        finally:
            await close_pool()

    return asyncio.run(measure())


def ours(endpoint: str) -> dict[str, Any]:
    """Return the measurements of a fresh installation with one worker for these calls."""
    with (
        tempfile.TemporaryDirectory() as home,
        served(DurablePostgresServer, DurablePostgresServer.make) as postgres,
        redis_server() as redis,
    ):
        env = environment(postgres.url, redis.url, home)
        env |= {"CONTINUITY_EGRESS_ALLOW": "127.0.0.1"}
        manage = [sys.executable, "manage.py"]
        subprocess.run([*manage, "migrate", "-v0", "--skip-checks"], env=env, cwd=ROOT, check=True)
        args = [endpoint, str(CALLS_PER_S), str(SECONDS), str(CALLS_PER_RUN)]
        with worker([*manage, "worker"], env):
            time.sleep(4)
            cpu_s = _cpu_s()
            completed = subprocess.run(
                [sys.executable, "-m", OURS, *args],
                env=env,
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
            cpu_s = _cpu_s() - cpu_s
    if completed.returncode != 0:
        raise RuntimeError(completed.stderr[-2000:])
    result: dict[str, Any] = json.loads(completed.stdout.splitlines()[-1])
    return result | {"worker_cpu_ms_per_call": round(cpu_s * 1000 / result["submitted"], 2)}


def _cpu_s() -> float:
    """Return the processor time of the worker so far, which shows its capacity on a busy
    machine."""
    children = psutil.Process().children(recursive=True)
    (worker_process,) = [
        child for child in children if child.cmdline()[1:] == ["manage.py", "worker"]
    ]
    times = worker_process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    """Measure and report."""
    real = "--real" in sys.argv
    os.environ["CONTINUITY_EGRESS_ALLOW"] = "127.0.0.1"
    with runner(real) as endpoint:
        plain_times, gateway_alone = floor(endpoint), gateway(endpoint)
        result = ours(endpoint)
    report(
        "runner_throughput",
        runner="docker_runner" if real else "stub",
        **result,
        gateway_alone=gateway_alone,
        floor=plain_times,
        ratio=round(result["call_ms"]["p50"] / plain_times["p50"], 1),
        goal="done = submitted at 200/s, and the queue does not grow",
    )


if __name__ == "__main__":
    main()
