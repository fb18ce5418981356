"""An agent host from start to end, over real stdio, in both protocol eras."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from subprocess import PIPE
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client

from tests.support.installation.mcp_process import (
    INITIALIZE,
    INITIALIZED,
    MANAGE,
    call,
    connected,
    own_database,
    started,
)

pytestmark = pytest.mark.anyio
both_eras = pytest.mark.parametrize("mode", ["auto", "legacy"])


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start an installation with a worker."""
    env = own_database(tmp_path_factory.mktemp("mcp"))
    with started("worker", env=env):
        yield env


def job(*do: str, **options: Any) -> dict[str, Any]:
    return {"templateId": "test_stepwise", "inputs": {"do": list(do)}, "options": options}


@pytest.mark.slow
@both_eras
async def test_a_run_from_submit_to_artifact(env: dict[str, str], mode: str) -> None:
    async with connected(env, mode=mode) as client:
        templates = await call(client, "list_task_templates")
        assert "test_stepwise" in {each["templateId"] for each in templates["templates"]}
        handle = await call(client, "run_task_template", **job("ok", "ok", mode="async"))
        assert handle["mode"] == "async"
        run = await call(client, "wait_task_run", runId=handle["runId"], waitMs=50_000)
        assert (run["status"], run["result"]) == ("succeeded", {"done": 2})
        (listed, *_) = (await call(client, "list_task_runs", limit=1))["runs"]
        assert listed["runId"] == handle["runId"]
        assert await whole_artifact(client, run["artifactIds"][0]) == {"done": 2}


async def whole_artifact(client: Client, artifact_id: str) -> Any:
    """Read an artifact in chunks of four bytes, as a client with a small buffer does."""
    text, complete = "", False
    while not complete:
        offset = len(text.encode())
        chunk = await call(client, "get_artifact", artifactId=artifact_id, offset=offset, limit=4)
        text += chunk["data"]
        complete = chunk["complete"]
    return json.loads(text)


def submit_and_be_killed(env: dict[str, str], arguments: dict[str, Any]) -> str:
    """Submit a run over a server that is killed as soon as it has answered; return the runId."""
    params = {"name": "run_task_template", "arguments": arguments}
    submit = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    with subprocess.Popen(
        [sys.executable, MANAGE, "mcp_stdio"], env=env, stdin=PIPE, stdout=PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in (INITIALIZE, INITIALIZED, submit):
            server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.kill()
    handle: str = answers[1]["result"]["structuredContent"]["runId"]
    return handle


@pytest.mark.slow
async def test_a_run_continues_when_its_server_is_killed(env: dict[str, str]) -> None:
    handle = await anyio.to_thread.run_sync(
        submit_and_be_killed, env, job("sleep:1.5", "ok", mode="async")
    )
    async with connected(env) as client:
        run = await call(client, "wait_task_run", runId=handle, waitMs=20_000)
    assert (run["status"], run["result"]) == ("succeeded", {"done": 2})


@pytest.mark.slow
@both_eras
async def test_a_run_continues_when_its_client_abandons_the_call(
    env: dict[str, str], mode: str
) -> None:
    key = f"given up {mode}"
    arguments = job("sleep:2", "ok", mode="sync", idempotencyKey=key)
    async with (
        connected(env, mode=mode) as client,
        connected(env, mode=mode) as other,
        anyio.create_task_group() as calls,
    ):
        before = (await call(other, "list_task_runs"))["total"]
        calls.start_soon(client.call_tool, "run_task_template", arguments)
        while (await call(other, "list_task_runs"))["total"] == before:
            await anyio.sleep(0.05)
        calls.cancel_scope.cancel()
    async with connected(env, mode=mode) as client:
        run = await call(client, "run_task_template", **arguments)
    assert (run["deduplicated"], run["status"]) == (True, "succeeded")
