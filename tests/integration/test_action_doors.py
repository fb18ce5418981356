"""Browser actions are for the agent's loop: no door lists one, calls one, or plans one."""

from __future__ import annotations

import httpx
import pytest

from runners.actions.catalogue import ACTIONS
from tests.support.rest import refusal

pytest_plugins = ["tests.support.rest_fixtures"]

ARGS = {"tabId": 7, "clickId": 1}


def test_the_list_of_tools_has_none(api: httpx.Client) -> None:
    listed = {tool["name"] for tool in api.get("/api/v1/tools").json()["tools"]}
    assert "browser_action" in listed  # of S4, which stays as it is
    assert not listed & set(ACTIONS)


@pytest.mark.parametrize("name", ["browser_click", "task_start", "task_stop"])
def test_a_direct_call_of_one_finds_no_such_tool(api: httpx.Client, name: str) -> None:
    problem = refusal(api.post(f"/api/v1/tools/{name}/call", json={"args": ARGS}), 404)
    assert problem["errorCode"] == "TOOL_NOT_FOUND"


def test_a_run_of_calls_with_one_is_refused_as_a_whole(api: httpx.Client) -> None:
    body = {
        "templateId": "call_tools",
        "inputs": {"calls": [{"name": "browser_click", "args": ARGS}]},
    }
    problem = refusal(api.post("/api/v1/runs", json=body), 400)
    assert problem["errorCode"] == "INVALID_PARAMETER"
    assert "no tool browser_click" in problem["message"]
