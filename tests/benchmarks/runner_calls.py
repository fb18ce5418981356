"""Measure a call to a runner through the gateway, against a plain persistent client (httpx) that
sends the same bytes to the same runner."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import httpx
import orjson

from runners.gateway.client import call_runner
from runners.gateway.connections import close_pool
from runners.gateway.request import RunnerCallContext, RunnerTarget
from runners.tools.base import ToolCall
from tests.benchmarks.rounds import alternate, ratio, report, spread

CALLS = 300
RUNNER = """
import sys
from tests.support.runners.stub_runner import responding_with, stub_runner
answer = {"result": {"ok": True, "output": "mock-runner:bash.exec"}}
with stub_runner(responding_with(answer)) as runner:
    print(runner.url, flush=True)
    sys.stdin.read()
"""
CALL = ToolCall("bash.exec", {"cmd": "printf hello"})
BODY = orjson.dumps(
    {
        "call": {"name": CALL.name, "args": dict(CALL.args)},
        "ctx": {"runId": "r", "sessionId": "s", "runtimeMode": "local", "toolCallId": "t"},
        "target": {"targetId": "t", "kind": "docker-runner", "tenantId": "t", "workspaceId": "w"},
    }
)


@contextmanager
def runner_process() -> Iterator[str]:
    """Start a runner in a separate process and yield its address."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate()


async def p50_ms(call: Callable[[], Awaitable[object]]) -> float:
    """Return the median time of a call, without the first calls."""
    durations = []
    for _ in range(CALLS):
        started = time.perf_counter()
        await call()
        durations.append((time.perf_counter() - started) * 1000)
    return statistics.median(durations[20:])


def gateway_ms(url: str) -> float:
    """Return the time of a call through the gateway."""
    target = RunnerTarget("t", "t", "w", url)

    async def measure() -> float:
        async def call_once() -> None:
            deadline = time.monotonic() + 60
            ctx = RunnerCallContext("r", "s", "local", "t", deadline, lambda update: None)
            assert (await call_runner(CALL, ctx, target)).ok

        try:
            return await p50_ms(call_once)
        finally:
            await close_pool()

    return asyncio.run(measure())


def plain_ms(url: str) -> float:
    """Return the time of a call with a plain persistent client."""

    async def measure() -> float:
        async with httpx.AsyncClient(headers={"content-type": "application/json"}) as client:

            async def call_once() -> None:
                assert (await client.post(url, content=BODY)).json()["result"]["ok"]

            return await p50_ms(call_once)

    return asyncio.run(measure())


def main() -> None:
    """Print both, and their ratio."""
    os.environ["CONTINUITY_EGRESS_ALLOW"] = "127.0.0.1"
    with runner_process() as url:
        measurements = alternate({"ours": lambda: gateway_ms(url), "floor": lambda: plain_ms(url)})
    report(
        "runner_calls",
        unit="ms, p50",
        ours=spread(measurements["ours"]),
        floor=spread(measurements["floor"]),
        ratio=ratio(measurements["ours"], measurements["floor"]),
        goal="ratio <= 1.3",
    )


if __name__ == "__main__":
    main()
