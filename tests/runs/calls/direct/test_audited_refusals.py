"""Direct tool calls that are refused before they start: each writes one audit event, over REST
and MCP, with the caller, the tool and the error code, and without the arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from decisions.identity.principals import create_token
from decisions.models import AuditEntry
from tests.support.runners.tool_client import APIS, ToolClient

SECRET = "hunter2-secret"
WRITE = {"path": "game/scene/new.txt", "content": SECRET, "dryRun": True}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
def rows() -> Callable[[], list[AuditEntry]]:
    """Return the audit events since the test began, without the one of the token it created."""
    before = set(AuditEntry.objects.values_list("id", flat=True))

    def since() -> list[AuditEntry]:
        new = AuditEntry.objects.exclude(id__in=before).exclude(action="token.created")
        assert SECRET not in str(list(new.values_list("resource_id", "metadata")))
        return list(new.order_by("id"))

    return since


def row_content(row: AuditEntry) -> tuple[str, str, dict[str, Any]]:
    return row.action, row.resource_id, row.metadata


@pytest.mark.parametrize("over", APIS)
def test_a_missing_scope_is_audited(
    over: str, web: str, project: Path, rows: Callable[[], list[AuditEntry]]
) -> None:
    token = create_token(name="reader", trust="local", scopes=frozenset({"tools:read"}))
    tool_client = ToolClient(web, token, over=over)
    assert tool_client.call("write_to_file", WRITE)[0] == "E_POLICY_VIOLATION"
    tool_client.close()
    (row,) = rows()
    metadata = {"tool": "write_to_file", "code": "E_POLICY_VIOLATION", "scope": "tools:write"}
    assert row_content(row) == ("tool.refused", "write_to_file", metadata)
    assert row.actor.startswith("token:")


def test_a_token_without_any_tool_scope_is_audited_with_the_tool(
    client_with: Callable[..., httpx.Client], project: Path, rows: Callable[[], list[AuditEntry]]
) -> None:
    client = client_with(scopes={"runs:write"})
    answer = client.post("/api/v1/tools/write_to_file/call", json={"args": WRITE})
    assert answer.status_code == 403
    (row,) = rows()
    assert (row.action, row.metadata["tool"]) == ("access.refused", "write_to_file")


def test_an_unknown_tool_is_audited(
    tool_client: ToolClient, rows: Callable[[], list[AuditEntry]]
) -> None:
    if tool_client.over == "mcp":
        assert tool_client.call("no_such_tool", WRITE)[0] == "RPC_-32602"
    else:
        url = "/api/v1/tools/no_such_tool/call"
        assert tool_client.client.post(url, json={"args": WRITE}).status_code == 404
    (row,) = rows()
    metadata = {"tool": "no_such_tool", "code": "TOOL_NOT_FOUND"}
    assert row_content(row) == ("tool.refused", "no_such_tool", metadata)


def test_a_tool_name_that_looks_like_a_secret_is_not_stored(
    api: httpx.Client, project: Path, rows: Callable[[], list[AuditEntry]]
) -> None:
    key = "sk-" + "a1" * 20
    assert api.post(f"/api/v1/tools/{key}/call", json={}).status_code == 404
    assert api.post(f"/api/v1/tools/{'x' * 3000}%00/call", json={}).status_code == 400
    first, second = rows()
    assert (first.resource_id, second.resource_id) == ("***", "x" * 64)


@pytest.mark.parametrize(
    "args", [WRITE | {"dryRun": SECRET}, b'{"path":"a","path":"hunter2-secret"}']
)
def test_wrong_arguments_are_audited_without_their_values(
    tool_client: ToolClient, args: Any, rows: Callable[[], list[AuditEntry]]
) -> None:
    assert tool_client.call("write_to_file", args)[0] == "E_BAD_ARGS"
    (row,) = rows()
    metadata = {"tool": "write_to_file", "code": "E_BAD_ARGS"}
    assert row_content(row) == ("tool.refused", "write_to_file", metadata)


@pytest.mark.parametrize("body", ["[1]", '{"args": [], "x": 1}', "{", '{"timeoutMs": 0}'])
def test_an_invalid_body_is_audited(
    api: httpx.Client, project: Path, body: str, rows: Callable[[], list[AuditEntry]]
) -> None:
    answer = api.post("/api/v1/tools/write_to_file/call", content=body, headers=JSON)
    assert answer.status_code == 400
    (row,) = rows()
    assert row_content(row)[2] == {"tool": "write_to_file", "code": "E_BAD_ARGS"}


def test_a_tool_that_this_trust_level_may_not_call_is_audited(
    client_with: Callable[..., httpx.Client],
    project: Path,
    rows: Callable[[], list[AuditEntry]],
    developer: None,
) -> None:
    remote = client_with(trust="remote")
    url = "/api/v1/tools/execute_command/call"
    answer = remote.post(url, json={"args": {"scriptName": "lint"}})
    (row,) = rows()
    code = answer.json()["error"]["code"]
    assert row_content(row) == (
        "tool.refused",
        "execute_command",
        {"tool": "execute_command", "code": code},
    )


def test_many_refused_calls_write_one_event_each(
    api: httpx.Client, project: Path, rows: Callable[[], list[AuditEntry]]
) -> None:
    big = {"args": {"path": "x" * 500_000, "content": 1}}
    for _ in range(5):
        assert api.post("/api/v1/tools/write_to_file/call", json=big).status_code == 400
    assert len(rows()) == 5
    assert max(len(str(row.metadata)) for row in rows()) < 200
