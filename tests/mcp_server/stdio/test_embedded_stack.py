"""`mcp_stdio` on the embedded default: it starts the stack, joins a running one, restarts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from runners.actions.catalogue import ACTIONS
from tests.support.installation.mcp_process import MANAGE, call, connected, refused

pytestmark = [pytest.mark.anyio]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Return the environment of an embedded default with an empty home; stop the stack after."""
    outside = ("DATABASE_URL", "REDIS_URL")
    env = {name: value for name, value in os.environ.items() if name not in outside}
    env["CONTINUITY_HOME"] = str(tmp_path / "home")
    yield env
    # A start still in progress would come up after `down`: join it first.
    for command in (["up", "--background"], ["down"]):
        ended = subprocess.run([sys.executable, MANAGE, *command], env=env, capture_output=True)
        assert ended.returncode == 0, ended.stderr.decode()


def supervisor_of(env: dict[str, str]) -> int:
    pid: int = json.loads((Path(env["CONTINUITY_HOME"]) / "stack.json").read_text())["pid"]
    return pid


def job(*do: str, **options: Any) -> dict[str, Any]:
    return {"templateId": "test_stepwise", "inputs": {"do": list(do)}, "options": options}


@pytest.mark.slow
async def test_two_hosts_share_one_stack_and_restart_it_after_a_crash(env: dict[str, str]) -> None:
    async with connected(env) as first_host, connected(env, mode="legacy") as second_host:
        runs: list[dict[str, Any]] = []

        async def run(client: Any) -> None:
            runs.append(await call(client, "run_task_template", **job("ok", mode="sync")))

        async with anyio.create_task_group() as group:
            group.start_soon(run, first_host)
            group.start_soon(run, second_host)
        assert [run["status"] for run in runs] == ["succeeded", "succeeded"]
        assert (await call(second_host, "list_task_runs"))["total"] == 2

        first_pid = supervisor_of(env)
        os.kill(first_pid, signal.SIGKILL)
        run_after = await call(first_host, "run_task_template", **job("ok", mode="sync"))
        assert run_after["status"] == "succeeded"
        assert supervisor_of(env) != first_pid


@pytest.mark.slow
async def test_an_unusable_home_is_reported_and_tried_again(env: dict[str, str]) -> None:
    home = Path(env["CONTINUITY_HOME"])
    home.write_text("in the way")
    async with connected({**env, "CONTINUITY_SECRET_KEYS": "k" * 40}) as client:
        assert len((await client.list_tools()).tools) == 32 + len(ACTIONS)
        error = await refused(client, "list_task_runs")
        assert (error["errorCode"], error["retryable"]) == ("EXECUTION_ERROR", True)
        assert "CONTINUITY_HOME" in error["message"]
        assert "manage.py doctor" in error["recovery"]
        home.unlink()
        assert (await call(client, "list_task_runs"))["total"] == 0


@pytest.mark.slow
async def test_a_host_that_exits_at_once_is_not_delayed_by_the_start(env: dict[str, str]) -> None:
    async with connected(env) as client:
        await client.list_tools()
        exit_time = time.monotonic()
    # The client waits two seconds, then it kills the process.
    assert time.monotonic() - exit_time < 2
