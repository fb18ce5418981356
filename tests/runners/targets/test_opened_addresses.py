"""The command line opens an address on loopback for the one runner that it adds there."""

from __future__ import annotations

import io
from collections.abc import Callable

import httpx
import pytest
from django.core.management import CommandError, call_command

from decisions.identity.principals import DEFAULT_SCOPES, Principal
from decisions.models import AuditEntry
from runners.errors import AddressNotAllowed
from runners.gateway.endpoint import checked_endpoint, loopback_address
from runners.models import ExecutionTarget
from runners.targets.runner_endpoint import runner_of
from runners.targets.targets import Caller
from tests.services import free_port
from tests.support.rest.rest import json_of, refusal
from tests.support.runners.runner_calls import call, failure_details
from tests.support.runners.stub_runner import responding_with, stub_runner

ADMIN = DEFAULT_SCOPES | {"targets:admin"}
OUTPUT = {"result": {"ok": True, "output": {"stdout": "hello"}}, "updates": []}


def add(endpoint: str, target_id: str = "target_a") -> str:
    """Add a runner on the command line; return what the command printed on stderr."""
    err = io.StringIO()
    call_command("add_target", id=target_id, endpoint=endpoint, stdout=io.StringIO(), stderr=err)
    return err.getvalue()


def opened(target_id: str = "target_a") -> str:
    """Return the address that is opened for a target."""
    return ExecutionTarget.objects.get(id=target_id).opened_address


def test_a_runner_that_the_command_line_adds_on_loopback_is_called(principal: Principal) -> None:
    with stub_runner(responding_with(OUTPUT)) as runner:
        address = runner.url.split("/")[2]
        assert f"{address} is opened for it alone" in (printed := add(runner.url))
        assert "Its runner answers" in printed
        target = runner_of(ExecutionTarget.objects.get(), Caller.of(principal))
        result = call(target.endpoint, opened_address=target.opened_address)
        assert result.output == {"stdout": "hello"}
        assert failure_details(call(target.endpoint))["reason"] == "connect"
    [row] = AuditEntry.objects.filter(action="target.created")
    assert row.metadata["openedAddress"] == address


def test_no_other_address_is_called_by_it(principal: Principal) -> None:
    with stub_runner(responding_with(OUTPUT)) as runner:
        elsewhere = f"127.0.0.1:{free_port()}"
        details = failure_details(call(runner.url, opened_address=elsewhere))
        assert (details["reason"], runner.requests) == ("connect", [])


def test_only_the_command_line_opens_an_address(
    principal: Principal, client_with: Callable[..., httpx.Client]
) -> None:
    admin = client_with(scopes=ADMIN, trust="local")
    endpoint, other = "http://127.0.0.1:18081/execute", "http://127.0.0.1:18082/execute"
    add(endpoint)
    new = {"kind": "docker-runner", "name": "b", "endpoint": endpoint}
    message = refusal(admin.post("/api/v1/targets", json=new), 400)["message"]
    assert "manage.py add_target" in message
    path = "/api/v1/targets/target_a"
    refusal(admin.put(path, json={"name": "a", "endpoint": other}), 400)
    json_of(admin.put(path, json={"name": "c", "endpoint": f"{endpoint}?v=2"}))
    assert opened() == "127.0.0.1:18081"
    json_of(admin.put(path, json={"name": "c", "endpoint": "https://runner.example/"}))
    assert opened() == ""
    refusal(admin.put(path, json={"name": "c", "endpoint": endpoint}), 400)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://10.0.0.7:8080/execute",
        "http://169.254.169.254/execute",
        "http://localhost:18081/execute",
        "http://builder.internal/execute",
        "http://user@127.0.0.1:18081/execute",
    ],
)
def test_only_a_literal_address_on_loopback_is_opened(principal: Principal, endpoint: str) -> None:
    with pytest.raises(CommandError, match="endpoint: "):
        add(endpoint)
    assert not ExecutionTarget.objects.exists()


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("http://127.0.0.1/", "127.0.0.1:80"),
        ("https://127.1/a?b#c", "127.0.0.1:443"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("http://[::ffff:127.0.0.1]:8080/", ""),
        ("http://0.0.0.0:8080/", ""),
        ("https://example.com/", ""),
    ],
)
def test_the_address_of_an_endpoint(endpoint: str, address: str) -> None:
    assert loopback_address(endpoint) == address
    if address:
        assert checked_endpoint(endpoint, address)
        with pytest.raises(AddressNotAllowed):
            checked_endpoint(endpoint, f"{address}1")
