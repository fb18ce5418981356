"""Submit runs of `call_tools` at a fixed rate of calls to a runner, and report the queue:
`python -m tests.benchmarks.our_runner_calls ENDPOINT CALLS_PER_S SECONDS CALLS_PER_RUN`.

Prints JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
sys.argv[1:1] = ["mcp_stdio"]  # the MCP server's settings: no admin to load
django.setup()

from decisions.identity.principals import Principal, local_principal  # noqa: E402
from runners.targets.targets import TargetFields, allow_on_target, create_target_row  # noqa: E402
from runs.models import ACTIVE, Run, RunStatus, RunStep  # noqa: E402
from runs.submission.submit import submit_run  # noqa: E402
from tests.benchmarks.rounds import percentiles  # noqa: E402

DRAIN_S = 120.0


def make_calls(principal: Principal, endpoint: str, number: int) -> list[dict[str, Any]]:
    """Create a target for the runner and return the calls of one run."""
    fields = TargetFields(
        principal.tenant_id, principal.workspace_id, "bench", "docker-runner", endpoint=endpoint
    )
    target = create_target_row(fields, actor="bench")
    allow_on_target(target, ["echo"], actor="bench", reason="test")
    return [{"name": "echo", "args": {"text": "hello"}, "targetId": target.id}] * number


def submit_at_rate(calls: list[dict[str, Any]], runs_per_s: float, seconds: float) -> list[int]:
    """Submit runs at the fixed rate, however far the worker is behind; return how many were not
    started, by second."""
    principal = local_principal()
    queued: list[int] = []
    started = time.perf_counter()
    for number in range(int(runs_per_s * seconds)):
        time.sleep(max(0.0, started + number / runs_per_s - time.perf_counter()))
        submit_run(
            principal=principal,
            template_id="call_tools",
            inputs={"calls": calls},
            options={"mode": "async"},
        )
        if time.perf_counter() - started >= len(queued) + 1:
            queued.append(Run.objects.filter(status=RunStatus.QUEUED).count())
    return queued


def wait_until_empty() -> float:
    """Wait until the queue is empty and return the seconds that it took."""
    started = time.perf_counter()
    while Run.objects.filter(status__in=ACTIVE).exists():
        time.sleep(0.05)
        if time.perf_counter() - started > DRAIN_S:
            raise TimeoutError("the worker does not finish the runs")
    return time.perf_counter() - started


def main(endpoint: str, calls_per_s: float, seconds: float, calls_per_run: int) -> dict[str, Any]:
    """Submit the runs and return the measurements."""
    calls = make_calls(local_principal(), endpoint, calls_per_run)
    submit_at_rate(calls, 2, 2)  # the worker's first calls open connections that later calls use
    wait_until_empty()
    first = Run.objects.count()
    started = time.perf_counter()
    queued = submit_at_rate(calls, calls_per_s / calls_per_run, seconds)
    submitting_s = time.perf_counter() - started
    drain_s = wait_until_empty()
    runs = Run.objects.order_by("created_at")[first:]
    times = [(run.ended_at, run.created_at) for run in runs if run.ended_at is not None]
    steps = RunStep.objects.filter(run__in=[run.id for run in runs], status="succeeded")
    spans = steps.values_list("started_at", "ended_at")
    return {
        "submitted": len(runs) * calls_per_run,
        "submitted_per_s": round(len(runs) * calls_per_run / submitting_s, 1),
        "done": steps.count(),
        "queued_runs_by_second": queued,
        "drain_s": round(drain_s, 2),
        "call_ms": percentiles(
            [(end - start).total_seconds() * 1000 for start, end in spans if start and end]
        ),
        "run_ms": percentiles([(end - start).total_seconds() * 1000 for end, start in times]),
    }


if __name__ == "__main__":
    endpoint, rate, seconds, per_run = sys.argv[2:]
    print(json.dumps(main(endpoint, float(rate), float(seconds), int(per_run))))
