"""Test failures of the server: it returns an error id, logs the failure and keeps running."""

from __future__ import annotations

import logging
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from decisions.foundation.errors import NotReady
from decisions.foundation.validation.json_input import CALL_LIMIT
from decisions.identity.principals import Principal
from mcp_server.protocol.request_context import MessageContext
from mcp_server.tools.registry import McpTool, McpToolCall
from runs.api.schemas.runs import NO_INPUT, RUN_ID_INPUT
from tests.contract.mcp_host import (
    Host,
    PrincipalTransport,
    StdioHost,
    error_in_s4,
    error_of,
    structured,
)


async def raise_error(call: McpToolCall) -> dict[str, Any]:
    """Raise an unexpected exception."""
    raise ZeroDivisionError("a secret at /srv/continuity/keys")


async def violate_schema(call: McpToolCall) -> dict[str, Any]:
    """Return an answer that the schema does not allow."""
    return {"runId": 5, "sqlite": "/srv/continuity.sqlite3"}


def tool(name: str, handler: Any) -> McpTool:
    return McpTool(
        name=name,
        title=name,
        description=name,
        input_schema=NO_INPUT,
        output_schema=RUN_ID_INPUT,
        handler=handler,
    )


@pytest.fixture
def broken_host(principal: Principal) -> Iterator[Host]:
    """Connect a host whose server offers two tools with defects."""
    host = StdioHost(PrincipalTransport(principal))
    host.server.tools["raise_error"] = tool("raise_error", raise_error)
    host.server.tools["violate_schema"] = tool("violate_schema", violate_schema)
    yield host
    host.close()


@pytest.mark.parametrize("name", ["raise_error", "violate_schema"])
def test_a_defect_is_reported_with_an_error_id_only(
    broken_host: Host, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    error = error_of(broken_host.call(name, {}))
    assert error["errorCode"] == "EXECUTION_ERROR"
    assert error["details"]["errorId"] in error["message"]
    assert "/srv" not in str(error)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.__dict__["errorId"] == error["details"]["errorId"]
    assert record.exc_info
    assert structured(broken_host.call("get_runtime_profile", {}))["maxUrls"] == 1000


def test_an_error_contains_what_to_do_next(host: Host) -> None:
    error = error_of(host.call("run_task_template", {"templateId": "nope", "inputs": {}}))
    assert error["errorCode"] == "TEMPLATE_NOT_FOUND"
    assert error["retryable"] is False
    assert "list the templates" in error["recovery"]


def test_every_wrong_argument_is_named(host: Host) -> None:
    error = error_of(host.call("wait_task_run", {"runId": 5, "waitMS": 5}))
    named = [each["path"] + each["message"] for each in error["details"]["errors"]]
    assert len(named) == 2
    assert "waitMS" in str(named)
    assert "runId" in str(named)


def test_wrong_arguments_are_refused_before_the_stack_is_needed(
    principal: Principal,
) -> None:
    class UnreadyTransport(PrincipalTransport):
        async def authenticate(self, context: MessageContext, *, needs_stack: bool) -> Principal:
            raise NotReady("The stack is not there.")

    host = StdioHost(UnreadyTransport(principal))
    wrong = error_of(host.call("get_task_run", {"runId": 5}))
    right = error_of(host.call("get_task_run", {"runId": "run_1"}))
    host.close()
    assert (wrong["errorCode"], right["errorCode"]) == ("INVALID_PARAMETER", "EXECUTION_ERROR")
    assert right["retryable"] is True


@pytest.mark.parametrize("language", ["EN", "ZH"])
def test_a_workspace_tool_reports_an_unavailable_stack_as_an_s4_error(
    principal: Principal, settings: Any, language: str
) -> None:
    class UnreadyTransport(PrincipalTransport):
        async def authenticate(self, context: MessageContext, *, needs_stack: bool) -> Principal:
            raise NotReady("The stack is not there.")

    settings.CONTINUITY_MCP_TOOLSETS = ["workspace"]
    settings.WORKSPACE_POLICY = replace(settings.WORKSPACE_POLICY, language=language)
    host = StdioHost(UnreadyTransport(principal))
    error = error_in_s4(host.call("get_runtime_info", {}))
    host.close()
    assert (error["code"], error["recoverable"]) == ("E_TIMEOUT", True)
    assert ("manage.py doctor" in error["hint"], error["hint"].isascii()) == (
        True,
        language == "EN",
    )


@pytest.mark.parametrize("method", ["tasks/list", "no/such/method"])
def test_an_unsupported_method_is_a_protocol_error(host: Host, method: str) -> None:
    assert host.request(method, {})["error"]["code"] == -32601


def test_a_call_without_a_name_is_a_protocol_error(host: Host) -> None:
    assert host.request("tools/call", {"arguments": {}})["error"]["code"] == -32602


def test_ping_is_answered(host: Host) -> None:
    assert host.request("ping", {})["result"] == {}


def test_a_call_with_invalid_json_in_its_arguments_is_not_performed_without_them(
    host: Host,
) -> None:
    error = error_of(host.call("list_task_runs", b'{"limit": NaN}'))
    assert error["errorCode"] == "INVALID_PARAMETER"


def test_an_endless_line_does_not_fill_the_memory(principal: Principal) -> None:
    host = StdioHost(PrincipalTransport(principal))
    line = b"x" * (48 << 20)
    tracemalloc.start()
    host.send(line)
    answer = host.receive()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    host.close()
    assert answer["error"]["code"] == -32600
    # The host's own copy of the line, and at most two copies of the longest line that is read.
    assert peak < len(line) + 2 * CALL_LIMIT + (4 << 20)
