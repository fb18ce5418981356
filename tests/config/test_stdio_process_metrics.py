"""GET /metrics: what the stdio process of a host counts of its own direct calls."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from django.conf import settings
from redis import Redis

from runners.metrics import RUNNER_CALLS
from tests.support.installation.mcp_process import MANAGE, call, connected, own_database
from tests.support.runners.stub_runner import responding_with, stub_runner

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.slow
async def test_a_direct_call_over_stdio_is_counted_though_the_host_exits_at_once(
    tmp_path: Path,
) -> None:
    env = own_database(tmp_path)
    with stub_runner(responding_with({"ok": True, "output": "hello"})) as runner:
        env["CONTINUITY_EGRESS_ALLOW"] = runner.url.split("/")[2]
        make = ["add_target", "--id", "target_b", "--endpoint", runner.url]
        make += ["--allow", "echo", "--reason", "test"]
        subprocess.run([sys.executable, MANAGE, *make], env=env, check=True, capture_output=True)
        async with connected(env, "--toolsets", "targets") as client:
            await call(client, "echo", targetId="target_b", args={"text": "a"})
    with Redis.from_url(settings.REDIS_URL) as redis:
        stored = redis.hgetall(f"{env['CONTINUITY_REDIS_PREFIX']}figures")
    assert isinstance(stored, dict)
    counted = {tuple(orjson.loads(series)): float(number) for series, number in stored.items()}
    ok = [n for series, n in counted.items() if series[:2] == (RUNNER_CALLS.name, "ok")]
    assert 1 in ok
