"""A client that calls workspace tools over REST or over MCP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx

from decisions.identity.principals import authenticate
from tests.contract.bad_inputs import encode
from tests.contract.mcp_host import PrincipalTransport, StdioHost
from tests.support.rest.rest import NO_TLS, bearer
from tests.support.rest.rest_server import TIMEOUT_S

APIS = ("rest", "mcp")
CallAnswer = tuple[str, dict[str, Any]]  # (error code or OK, output or error object)


class ToolClient:
    """A client of one principal that calls workspace tools over REST or over MCP."""

    def __init__(self, web: str, token: str, *, over: str) -> None:
        self.over = over
        # A separate MCP server, which offers the toolsets of this test's settings.
        self._host = StdioHost(PrincipalTransport(authenticate(token))) if over == "mcp" else None
        self.client = httpx.Client(
            base_url=web, headers=bearer(token), timeout=TIMEOUT_S, verify=NO_TLS
        )

    def call(self, tool: str, args: Mapping[str, Any] | bytes) -> CallAnswer:
        """Call a tool; the arguments may be raw JSON."""
        raw = args if isinstance(args, bytes) else encode(args)
        return self._over_rest(tool, raw) if self._host is None else self._over_mcp(tool, raw)

    def _over_rest(self, tool: str, raw: bytes) -> CallAnswer:
        response = self.client.post(
            f"/api/v1/tools/{tool}/call",
            content=b'{"args":' + raw + b"}",
            headers={"Content-Type": "application/json"},
        )
        body = response.json()
        assert response.is_success == ("output" in body or response.status_code == 202), body
        return ("OK", body["output"]) if "output" in body else _error_of(body)

    def _over_mcp(self, tool: str, raw: bytes) -> CallAnswer:
        assert self._host is not None
        answer = self._host.call(tool, raw)
        if "error" in answer:
            return f"RPC_{answer['error']['code']}", answer["error"]
        result = answer["result"]
        if not result["isError"]:
            return "OK", result["structuredContent"]
        assert "structuredContent" not in result
        return _error_of(json.loads(result["content"][0]["text"]))

    def close(self) -> None:
        """Close the client and the MCP server."""
        if self._host is not None:
            self._host.close()
        self.client.close()


def _error_of(body: dict[str, Any]) -> CallAnswer:
    """Return code and error object; check that the error has exactly the shape of S4."""
    assert set(body) == {"error"}, body
    error = body["error"]
    assert {"code", "message", "recoverable"} <= set(error)
    assert set(error) <= {"code", "message", "details", "hint", "recoverable"}
    return error["code"], error
