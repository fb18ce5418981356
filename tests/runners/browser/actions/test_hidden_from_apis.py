"""Browser actions belong to the agent's loop: MCP and REST do not list, call or plan them."""

from __future__ import annotations

import httpx
import pytest

from runners.actions.catalogue import ACTIONS
from tests.support.rest.rest import refusal

ARGS = {"tabId": 7, "clickId": 1}


def test_the_tool_list_contains_no_browser_action(api: httpx.Client) -> None:
    listed = {tool["name"] for tool in api.get("/api/v1/tools").json()["tools"]}
    assert "browser_action" in listed  # of S4, which stays as it is
    assert not listed & set(ACTIONS)


@pytest.mark.parametrize("name", ["browser_click", "task_start", "task_stop"])
def test_a_direct_call_of_a_browser_action_returns_tool_not_found(
    api: httpx.Client, name: str
) -> None:
    problem = refusal(api.post(f"/api/v1/tools/{name}/call", json={"args": ARGS}), 404)
    assert problem["errorCode"] == "TOOL_NOT_FOUND"


def test_a_run_of_calls_that_contains_a_browser_action_is_rejected(api: httpx.Client) -> None:
    body = {
        "templateId": "call_tools",
        "inputs": {"calls": [{"name": "browser_click", "args": ARGS}]},
    }
    problem = refusal(api.post("/api/v1/runs", json=body), 400)
    assert problem["errorCode"] == "INVALID_PARAMETER"
    assert "no tool browser_click" in problem["message"]
