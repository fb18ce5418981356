"""An agent host over HTTP with the SDK's client: both protocol eras, and the older SSE stream."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from decisions.identity.principals import Principal
from mcp_server.toolsets import continuity, runtime, workspace
from runs.models import Run
from tests.contract.mcp_host import PrincipalTransport, StdioHost
from tests.contract.mcp_http_host import WebHost
from tests.support.rest.rest import bearer

TRANSPORTS = ("auto", "legacy", "sse")
each_transport = pytest.mark.parametrize("mode", TRANSPORTS)


@asynccontextmanager
async def connected(web: str, token: str, mode: str) -> AsyncIterator[Client]:
    """Connect as a host does: by negotiation, with a handshake, or over the older SSE stream."""
    if mode == "sse":
        transport = sse_client(f"{web}/sse", headers=bearer(token))
        async with Client(transport, mode="legacy", read_timeout_seconds=60) as client:
            yield client
        return
    async with httpx2.AsyncClient(headers=bearer(token), timeout=60) as http:
        transport = streamable_http_client(f"{web}/mcp", http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=60) as client:
            yield client


def with_client(web: str, token: str, mode: str, function: Callable[[Client], Any]) -> Any:
    """Run a function with a connected client."""

    async def go() -> Any:
        async with connected(web, token, mode) as client:
            return await function(client)

    return asyncio.run(go())


@each_transport
def test_the_server_announces_its_name_and_its_tools(web: str, token: str, mode: str) -> None:
    async def work(client: Client) -> None:
        assert client.server_info is not None
        assert client.server_info.name == "continuity"
        experimental = client.server_capabilities.experimental
        assert experimental == {"continuity": {"continuity_mcp_version": "1.1.0"}}
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == [
            tool.name for tool in (*runtime.TOOLS, *continuity.TOOLS, *workspace.TOOLS)
        ]
        assert all(tool.output_schema for tool in listed)

    with_client(web, token, mode, work)


@each_transport
@pytest.mark.usefixtures("background_worker")
def test_a_sync_run_reports_progress_and_is_readable_as_a_resource(
    web: str, token: str, mode: str, tmp_path: Path
) -> None:
    progress_values: list[float] = []

    async def record_progress(progress: float, total: float | None, message: str | None) -> None:
        progress_values.append(progress)
        (tmp_path / str(int(progress))).touch()  # the next step may end

    async def work(client: Client) -> None:
        call = {
            "templateId": "test_stepwise",
            "inputs": {"do": [f"until:{tmp_path / str(number)}" for number in range(3)]},
            "options": {"mode": "sync"},
        }
        answer = await client.call_tool(
            "run_task_template", call, progress_callback=record_progress
        )
        run = answer.structured_content
        assert run is not None
        assert (run["status"], run["result"]) == ("succeeded", {"done": 3})
        read = await client.read_resource(f"continuity://runs/{run['runId']}")
        assert json.loads(read.contents[0].text)["status"] == "succeeded"  # type: ignore[union-attr]
        listed = await client.list_resources()
        assert len(listed.resources) == 2

    with_client(web, token, mode, work)
    assert len(progress_values) > 1
    assert progress_values == sorted(set(progress_values))


@each_transport
def test_refusals_are_tool_errors_or_protocol_errors(web: str, token: str, mode: str) -> None:
    async def work(client: Client) -> None:
        answer = await client.call_tool("get_task_run", {"runId": "run_unknown"})
        assert answer.is_error is True
        assert json.loads(answer.content[0].text)["errorCode"] == "RUN_NOT_FOUND"  # type: ignore[union-attr]
        with pytest.raises(MCPError) as refused:
            await client.read_resource("continuity://runs/run_unknown")
        assert refused.value.error.code == (-32602 if mode == "auto" else -32002)
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("no_such_tool", {})

    with_client(web, token, mode, work)


@each_transport
def test_a_client_can_make_another_call_after_a_timeout(
    web: str, token: str, make_run: Callable[..., Run], mode: str
) -> None:
    arguments = {"runId": make_run(status="running").id, "waitMs": 30_000}

    async def work(client: Client) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await client.call_tool("wait_task_run", arguments)
        profile = await client.call_tool("get_runtime_profile", {})
        assert profile.structured_content is not None

    with_client(web, token, mode, work)


def test_stdio_and_http_return_the_same_results(
    web: str,
    token: str,
    principal: Principal,
    make_run: Callable[..., Run],
    make_artifact: Callable[..., str],
) -> None:
    run = make_run(status="succeeded", result={"text": "漢字" * 40_000})
    artifact = make_artifact(b'{"a": 1}', mime_type="application/json", run_id=run.id)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_task_templates", {}),
        ("get_runtime_profile", {}),
        ("list_task_runs", {}),
        ("get_task_run", {"runId": run.id}),
        ("cancel_task_run", {"runId": run.id}),
        ("get_artifact", {"artifactId": artifact}),
        ("wait_task_run", {"runId": run.id}),
        ("subscribe_task_run_events", {"runId": run.id}),
        ("read_page_content", {"artifactId": artifact, "grep": "a"}),
        ("get_task_run", {"runId": 5}),
        ("answer_task_run", {"runId": run.id, "answer": "x"}),
        ("get_task_run", {}),
        ("list_task_runs", {"limit": 0}),
    ]
    stdio_host, http_host = StdioHost(PrincipalTransport(principal)), WebHost(web, token)
    for tool, arguments in calls:
        over_stdio, over_http = stdio_host.call(tool, arguments), http_host.call(tool, arguments)
        assert over_stdio["result"] == over_http["result"], tool
    nan = b'{"runId":NaN}'
    over_stdio, over_http = (
        stdio_host.call("get_task_run", nan),
        http_host.call("get_task_run", nan),
    )
    assert over_stdio["result"] == over_http["result"]
    stdio_host.close()
    http_host.close()


@pytest.mark.slow
def test_the_web_process_does_not_import_the_sdk_before_a_call() -> None:
    """The SDK takes longer to import than everything else together."""
    code = "import sys, config.asgi; print([m for m in ('mcp', 'mcp_types') if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout.strip() == "[]"
