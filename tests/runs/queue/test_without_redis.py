"""Submit, claim, wait, SSE and MCP work by polling whatever Redis answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from decisions.foundation.infra.redis import describe_redis_fault
from runs.operations.health.checks import check_redis
from tests.support.installation.broken_redis import KINDS, REFUSED, broken_redis
from tests.support.rest.rest import json_of, submission

FEW = (REFUSED, "read-only")
WORDS = {
    REFUSED: "Redis accepts no connection.",
    "loading": "Redis is loading its data.",
    "misconfigured": "Redis refuses writes (MISCONF).",
    "read-only": "Redis is a replica, which takes no writes.",
    "full": "Redis is full: it has reached maxmemory.",
    "password": "Redis refuses the password of REDIS_URL.",
    "no number": "What answers at REDIS_URL is not Redis.",
    "another protocol": "What answers at REDIS_URL is not Redis.",
    "silent": "Redis did not answer in time.",
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, settings: Any) -> Iterator[str]:
    with broken_redis(request.param) as url:
        settings.REDIS_URL = url
        yield request.param


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("kind", FEW, indirect=True)
def test_a_run_is_accepted_executed_waited_for_and_streamed(api: httpx.Client, kind: str) -> None:
    submit_wait_and_read(api)


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in FEW], indirect=True)
def test_a_run_is_so_with_every_other_broken_redis(api: httpx.Client, kind: str) -> None:
    submit_wait_and_read(api)


def submit_wait_and_read(api: httpx.Client) -> None:
    began = time.monotonic()
    run_id = json_of(api.post("/api/v1/runs", json=submission()), 202)["runId"]
    accepted_s = time.monotonic() - began
    run = json_of(api.get(f"/api/v1/runs/{run_id}/wait?waitMs=20000"))
    assert run["status"] == "succeeded"
    assert accepted_s < 10  # time-outs of Redis, on a machine that may be busy
    events = api.get(f"/api/v1/runs/{run_id}/events", headers={"Accept": "text/event-stream"})
    assert "run.succeeded" in events.text
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    named = {"name": "get_task_run", "arguments": {"runId": run_id}}
    answer = api.post(
        "/mcp",
        json=call | {"params": named},
        headers={"Accept": "application/json, text/event-stream"},
    )
    assert run_id in answer.text


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_what_is_wrong_with_redis_is_said_in_words(kind: str) -> None:
    assert describe_redis_fault() == WORDS[kind]
    assert check_redis().verdict == "bad"
    assert WORDS[kind] in check_redis().what
