"""Test progress while a call waits, and calls that their client cancels."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decisions.identity.principals import Principal
from mcp_server.protocol import progress
from runs.models import Run
from runs.submission.cancel import cancel_run
from tests.contract.mcp_host import Host, structured

TRANSPORTS = ("stdio", "http", "sse")


def start_call_with_token(host: Host, tool: str, **arguments: Any) -> int:
    meta = {"progressToken": "token"}
    return host.start_request("tools/call", {"name": tool, "arguments": arguments, "_meta": meta})


def progress_and_answer(
    host: Host, request_id: int, on_progress: Callable[[float], object]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the progress notifications of a request, and its answer."""
    notifications: list[dict[str, Any]] = []
    while True:
        message = host.receive()
        if message.get("id") == request_id:
            return notifications, structured(message)
        assert message["method"] == "notifications/progress"
        assert message["params"]["progressToken"] == "token"
        notifications.append(message["params"])
        on_progress(message["params"]["progress"])


@pytest.mark.usefixtures("background_worker")
def test_a_sync_run_reports_each_step_once(host: Host, tmp_path: Path) -> None:
    job = {"do": [f"until:{tmp_path / str(number)}" for number in range(3)]}
    request = start_call_with_token(
        host, "run_task_template", templateId="test_stepwise", inputs=job, options={"mode": "sync"}
    )
    notifications, answer = progress_and_answer(
        host, request, lambda done: (tmp_path / str(int(done))).touch()
    )
    values = [each["progress"] for each in notifications]
    assert answer["status"] == "succeeded"
    assert len(values) > 1
    assert values == sorted(set(values))
    assert {each["total"] for each in notifications} == {3}
    assert notifications[-1]["message"].startswith("2 of 3 steps")


@pytest.mark.parametrize("tool", ["wait_task_run", "subscribe_task_run_events"])
def test_a_wait_without_progress_sends_keep_alive_notifications(
    host: Host,
    make_run: Callable[..., Run],
    principal: Principal,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
) -> None:
    monkeypatch.setattr(progress, "KEEP_ALIVE_S", 0.1)
    run = make_run(status="running", done_steps=2, total_steps=5)
    reported: list[float] = []

    def cancel_after_three(value: float) -> None:
        reported.append(value)
        if len(reported) == 3:
            cancel_run(principal=principal, run_id=run.id)

    request = start_call_with_token(host, tool, runId=run.id, waitMs=55_000)
    notifications, _ = progress_and_answer(host, request, cancel_after_three)
    values = [each["progress"] for each in notifications]
    assert values[0] == 2
    assert len(values) > 2
    assert values == sorted(set(values))
    assert values[-1] < 3
    assert {each["total"] for each in notifications} == {5}


def test_a_call_without_a_progress_token_gets_no_notification(
    host: Host, make_run: Callable[..., Run]
) -> None:
    run = make_run(status="running")
    request = host.start_call("wait_task_run", {"runId": run.id, "waitMs": 200})
    assert host.receive()["id"] == request


def test_a_canceled_call_is_not_answered_and_its_run_continues(host: Host) -> None:
    job = {
        "templateId": "test_stepwise",
        "inputs": {"do": ["ok"]},
        "options": {"mode": "sync", "idempotencyKey": "taken back"},
    }
    request = start_call_with_token(host, "run_task_template", **job)
    # The call waits, so the run is submitted.
    assert host.receive()["method"] == "notifications/progress"
    cancel = {"method": "notifications/cancelled", "params": {"requestId": request}}
    host.send(json.dumps({"jsonrpc": "2.0", **cancel}).encode())
    listed = structured(host.call("list_task_runs", {}))["runs"]
    assert [run["status"] for run in listed] == ["queued"]


@pytest.mark.slow
def test_calls_do_not_wait_for_each_other(host: Host, make_run: Callable[..., Run]) -> None:
    run = make_run(status="running")
    slow = host.start_call("wait_task_run", {"runId": run.id, "waitMs": 1500})
    quick = host.start_call("get_task_run", {"runId": run.id})
    assert [host.receive()["id"], host.receive()["id"]] == [quick, slow]
