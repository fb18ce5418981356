"""Test two agent hosts and a person's `up` on one home: one stack, more runs than slots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.support.installation.mcp_process import call, connected
from tests.support.installation.temporary_home import TemporaryHome, temporary_home

pytestmark = [pytest.mark.anyio]
RUNS_EACH = 4


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[TemporaryHome]:
    with temporary_home(
        tmp_path / "home", CONTINUITY_TEMPLATE_MODULES="tests.support.runs.step_template"
    ) as created:
        yield created


async def submit_runs(client: Client, gate: Path) -> list[str]:
    """Submit runs that end once the file exists."""
    job: dict[str, Any] = {
        "templateId": "test_stepwise",
        "inputs": {"do": [f"until:{gate}"]},
        "options": {"mode": "async"},
    }
    return [(await call(client, "run_task_template", **job))["runId"] for _ in range(RUNS_EACH)]


async def test_two_hosts_and_an_up_share_one_stack_and_its_slots(
    home: TemporaryHome, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    up = home.start("up")
    await anyio.to_thread.run_sync(up.wait_until_ready)
    supervisor = home.info.pid
    async with connected(home.env) as first_host, connected(home.env, mode="legacy") as second_host:
        runs = await submit_runs(first_host, gate) + await submit_runs(second_host, gate)
        queued = len(runs)
        with anyio.fail_after(60):
            while queued > len(runs) - 5:
                queued = (await call(first_host, "list_task_runs", status="queued"))["total"]
        assert queued >= 1
        gate.touch()
        for run_id in runs:  # each host sees the runs that the other submitted
            run = await call(second_host, "wait_task_run", runId=run_id, waitMs=55_000)
            assert run["status"] == "succeeded"
        assert (await call(first_host, "list_task_runs", status="succeeded"))["total"] == len(runs)
        assert home.info.pid == supervisor
    assert home.info.mode == "foreground"
