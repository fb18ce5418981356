"""Refused calls (a missing right or an unknown object) write one audit event each, over REST
and MCP; invalid tokens write a limited number of events a minute.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest

from decisions.audit.anonymous_events import write_counted_events
from decisions.identity.principals import Principal, authenticate, create_token
from decisions.models import AuditEntry
from tests.contract.mcp_host import PrincipalTransport, StdioHost
from tests.support.rest.rest import submission


@pytest.fixture
def reader(principal: Principal) -> Iterator[StdioHost]:
    """An MCP host whose token has only the scope runs:read."""
    token = create_token(name="reader", trust="local", scopes=frozenset({"runs:read"}))
    with closing(StdioHost(PrincipalTransport(authenticate(token)))) as host:
        yield host


def rows() -> list[AuditEntry]:
    return list(AuditEntry.objects.filter(action__endswith="refused").order_by("id"))


@pytest.mark.parametrize(
    ("tool", "args", "scope"),
    [
        (
            "run_task_template",
            {"templateId": "test_stepwise", "inputs": {"do": ["ok"]}},
            "runs:write",
        ),
        ("get_artifact", {"artifactId": "art_1"}, "artifacts:read"),
        ("continuity_get_state", {"user_id": "alice"}, "continuity:read"),
        (
            "continuity_put_shell",
            {
                "user_id": "alice",
                "social_interface": {},
                "narratives": {},
                "confidence": "high",
                "validity": "long",
                "source": "user",
            },
            "continuity:write",
        ),
    ],
)
def test_over_mcp_a_missing_scope_is_audited(
    reader: StdioHost, tool: str, args: dict[str, Any], scope: str
) -> None:
    assert reader.call(tool, json.dumps(args).encode())["result"]["isError"]
    (row,) = rows()
    assert (row.action, row.resource_id, row.metadata["scope"]) == ("tool.refused", tool, scope)
    assert row.actor.startswith("token:")


def test_a_resource_read_without_its_scope_is_audited(reader: StdioHost) -> None:
    params = {"uri": "continuity://artifacts/art_1"}
    assert "error" in reader.request("resources/read", params)
    (row,) = rows()
    assert (row.resource_id, row.metadata["scope"]) == ("resources/read", "artifacts:read")


def test_a_forbidden_user_id_is_audited_once_over_mcp(principal: Principal) -> None:
    token = create_token(name="bobs", trust="local", users=["bob"])
    with closing(StdioHost(PrincipalTransport(authenticate(token)))) as host:
        host.call("continuity_get_state", b'{"user_id": "alice"}')
    (row,) = rows()
    assert (row.action, row.resource_id) == ("access.refused", "alice")


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"templateId": "no_such"}, "TEMPLATE_NOT_FOUND"),
        ({"sessionId": "sess_x"}, "SESSION_NOT_FOUND"),
    ],
)
def test_a_submit_with_an_unknown_object_is_audited_over_rest_and_mcp(
    api: httpx.Client, token: str, changed: dict[str, Any], code: str
) -> None:
    call = {**submission(), **changed}
    assert api.post("/api/v1/runs", json=call).json()["errorCode"] == code
    with closing(StdioHost(PrincipalTransport(authenticate(token)))) as host:
        host.call("run_task_template", json.dumps(call).encode())
    over_rest, over_mcp = rows()
    assert over_rest.metadata == {"method": "POST", "errorCode": code}
    assert over_mcp.metadata == {"tool": "run_task_template", "code": code}
    assert "no_such" not in str([row.metadata for row in rows()])


def test_a_template_that_this_trust_level_may_not_use_is_audited_once(
    client_with: Callable[..., httpx.Client],
) -> None:
    call = {**submission(), "templateId": "call_tools", "inputs": {"calls": []}}
    remote = client_with(trust="remote")
    code = remote.post("/api/v1/runs", json=call).json()["errorCode"]
    assert (len(rows()), code in ("TRUST_LEVEL_NOT_ALLOWED", "FORBIDDEN")) in (
        (1, True),
        (0, False),
    )


def test_a_missing_scope_that_only_the_service_checks_is_audited(api: httpx.Client) -> None:
    hook = {"url": "https://hooks.example.test/", "confirmations": True}
    assert api.post("/api/v1/webhooks", json=hook).status_code == 403
    (row,) = rows()
    assert (row.action, row.metadata["scope"]) == ("access.refused", "confirm")


def test_not_found_reads_and_invalid_input_are_not_audited(api: httpx.Client) -> None:
    assert api.get("/api/v1/artifacts/art_x").status_code == 404
    assert api.post("/api/v1/runs", json={"templateId": 1}).status_code == 400
    assert not rows()


@pytest.mark.parametrize("path", ["/api/v1/runs", "/mcp"])
def test_many_invalid_tokens_write_a_few_events_without_the_token(
    anonymous: httpx.Client, path: str
) -> None:
    for number in range(12):
        bad = {"Authorization": f"Bearer cty_hunter2hunter2_{number}"}
        assert anonymous.post(path, headers=bad, json={}).status_code == 401
    refusals = rows()
    assert len(refusals) <= 2  # the minute may have ended meanwhile
    assert {(row.actor, row.resource_id) for row in refusals} == {("unknown", path)}
    write_counted_events(unfinished=True)
    assert sum(row.metadata["count"] for row in rows()) == 12
    assert "hunter2" not in str([row.metadata for row in rows()])


def test_a_path_that_looks_like_a_secret_is_not_stored(
    anonymous: httpx.Client,
    client_with: Callable[..., httpx.Client],
) -> None:
    key = "sk-" + "a1" * 20
    unknown = {"Authorization": "Bearer cty_unknown"}
    assert anonymous.get(f"/api/v1/runs/{key}", headers=unknown).status_code == 401
    caller = client_with(scopes=frozenset({"runs:write"}))
    assert caller.post(f"/api/v1/tools/{key}/call", json={}).status_code == 403
    by_token, by_scope = rows()
    assert by_token.resource_id == "/api/v1/runs/***"
    assert by_scope.metadata["tool"] == "***"


def test_a_nul_in_a_path_is_recorded_as_a_replacement_character(
    anonymous: httpx.Client,
    client_with: Callable[..., httpx.Client],
) -> None:
    unknown = {"Authorization": "Bearer cty_unknown"}
    assert anonymous.get("/api/v1/runs/a%00", headers=unknown).status_code == 401
    caller = client_with(scopes=frozenset({"runs:write"}))
    assert caller.post("/api/v1/tools/a%00/call", json={}).status_code == 403
    by_token, by_scope = rows()
    assert by_token.resource_id == "/api/v1/runs/a\ufffd"
    assert by_scope.metadata["tool"] == "a\ufffd"
