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
from tests.benchmarks.rounds import report, shape
from tests.benchmarks.runner_calls import running
from tests.services import DurablePostgresServer, redis_server, served
from tests.support.docker_runner_process import execute_body, start_docker_runner

CALLS_PER_S, SECONDS, CALLS_PER_RUN = 200, 20, 10
OURS = "tests.benchmarks.our_hands"


@contextmanager
def runner(real: bool) -> Iterator[str]:
    """Start a runner in a separate process and yield its address."""
    with ExitStack() as stack:
        if not real:
            yield stack.enter_context(running())
            return
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        hands = stack.enter_context(start_docker_runner(folder, "--isolation", "process"))
        yield f"http://127.0.0.1:{hands.port}/execute"


async def at_rate(call: Callable[[], Awaitable[object]]) -> dict[str, float]:
    """Send calls at a fixed rate; return their times, and the largest number in flight at once."""
    took: list[float] = []
    current_exchange: set[asyncio.Task[None]] = set()
    most = 0

    async def one() -> None:
        began = time.perf_counter()
        await call()
        took.append((time.perf_counter() - began) * 1000)

    began = time.perf_counter()
    for number in range(CALLS_PER_S * SECONDS // 2):
        await asyncio.sleep(max(0.0, began + number / CALLS_PER_S - time.perf_counter()))
        task = asyncio.create_task(one())
        current_exchange.add(task)
        task.add_done_callback(current_exchange.discard)
        most = max(most, len(current_exchange))
    made_s = time.perf_counter() - began
    await asyncio.gather(*current_exchange)
    return {**shape(took), "made_per_s": round(len(took) / made_s, 1), "under_way_at_most": most}


def floor(endpoint: str) -> dict[str, float]:
    """Return the times of the same calls with a plain persistent client, at the same rate."""

    async def calls() -> dict[str, float]:
        async with httpx.AsyncClient() as client:

            async def one() -> None:
                answer = await client.post(endpoint, json=execute_body("echo", {"text": "hello"}))
                answer.raise_for_status()

            return await at_rate(one)

    return asyncio.run(calls())


def gateway(endpoint: str) -> dict[str, float]:
    """Return their times through the gateway alone: one client in one process."""
    target = RunnerTarget("t", "t", "w", endpoint)

    async def one() -> None:
        ctx = RunnerCallContext("r", "s", "local", "t", time.monotonic() + 60, lambda update: None)
        assert (await call_runner(ToolCall("echo", {"text": "hello"}), ctx, target)).ok

    async def calls() -> dict[str, float]:
        try:
            return await at_rate(one)
        finally:
            await close_pool()

    return asyncio.run(calls())


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
        told = [endpoint, str(CALLS_PER_S), str(SECONDS), str(CALLS_PER_RUN)]
        with worker([*manage, "worker"], env):
            time.sleep(4)
            busy = _cpu_s()
            done = subprocess.run(
                [sys.executable, "-m", OURS, *told],
                env=env,
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
            busy = _cpu_s() - busy
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    made: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return made | {"worker_cpu_ms_per_call": round(busy * 1000 / made["offered"], 2)}


def _cpu_s() -> float:
    """Return the processor time of the worker so far, which shows its capacity on a busy
    machine."""
    children = psutil.Process().children(recursive=True)
    (one,) = [child for child in children if child.cmdline()[1:] == ["manage.py", "worker"]]
    times = one.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    """Measure and report."""
    real = "--real" in sys.argv
    os.environ["CONTINUITY_EGRESS_ALLOW"] = "127.0.0.1"
    with runner(real) as endpoint:
        plain, alone = floor(endpoint), gateway(endpoint)
        made = ours(endpoint)
    report(
        "runner_throughput",
        runner="docker_runner" if real else "stub",
        **made,
        gateway_alone=alone,
        floor=plain,
        ratio=round(made["call_ms"]["p50"] / plain["p50"], 1),
        goal="done = offered at 200/s, and the queue does not grow",
    )


if __name__ == "__main__":
    main()
