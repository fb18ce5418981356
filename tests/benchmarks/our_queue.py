"""Our durable run, driven like the floor: `python -m tests.benchmarks.our_queue
throughput|latency|writes N`."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
sys.argv[1:1] = ["mcp_stdio"]  # the MCP server's settings: no admin to load
django.setup()

from decisions.foundation.infra.threads import in_thread  # noqa: E402
from decisions.identity.principals import Principal, local_principal  # noqa: E402
from runs.models import ACTIVE, Run  # noqa: E402
from runs.streaming.long_poll import wait_run  # noqa: E402
from runs.submission.submit import submit_run  # noqa: E402


def submit(principal: Principal) -> str:
    """Submit a run of one step that does nothing."""
    return submit_run(
        principal=principal,
        template_id="test_stepwise",
        inputs={"do": ["ok"]},
        options={"mode": "async"},
    ).run_id


async def _latencies(count: int) -> list[float]:
    principal, durations = await in_thread(local_principal), []
    for _ in range(count):
        start = time.perf_counter()
        run_id = await in_thread(submit, principal)
        run = await wait_run(principal=principal, run_id=run_id, wait_s=20)
        if run["status"] != "succeeded":
            raise RuntimeError(str(run))
        durations.append((time.perf_counter() - start) * 1000)
    return durations


def latency_ms(count: int) -> float:
    """Return the median from submit until a waiting caller has the answer, one run at a time."""
    return statistics.median(asyncio.run(_latencies(count)))


def throughput(count: int) -> float:
    """Return runs per second from the first submit to the last end."""
    principal = local_principal()
    start = time.perf_counter()
    for _ in range(count):
        submit(principal)
    while Run.objects.filter(status__in=ACTIVE).exists():
        time.sleep(0.05)
        if time.perf_counter() - start > 120:
            raise TimeoutError("the worker does not finish the runs")
    return count / (time.perf_counter() - start)


if __name__ == "__main__":
    measure = {"throughput": throughput, "latency": latency_ms}[sys.argv[2]]
    print(measure(int(sys.argv[3])))
