"""Fixtures of the contract tests over MCP."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from django.db import connections

from decisions.foundation.infra import threads
from decisions.identity.principals import Principal, create_token
from tests.contract.mcp_host import Host, PrincipalTransport, StdioHost
from tests.contract.mcp_http_host import SseHost, WebHost


@pytest.fixture(scope="session", autouse=True)
def close_connections(django_db_setup: None) -> Iterator[None]:
    """Close the thread pool's database connections, so that the test database can be dropped."""
    yield
    pool = threads._pool
    if not pool._threads:
        return
    barrier = threading.Barrier(len(pool._threads))

    def close() -> None:
        connections.close_all()
        barrier.wait(20)  # so that every thread of the pool runs one of these

    for call in [pool.submit(close) for _ in range(barrier.parties)]:
        call.result()


# All MCP transports use the same input gate, server and thread pool. Modules that test what a
# transport does itself name more of them.
TRANSPORTS = ("http",)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the test over MCP at HTTP, or over the transports in the module's TRANSPORTS."""
    transports = getattr(metafunc.module, "TRANSPORTS", TRANSPORTS)
    for name in {"host", "remote_host"} & set(metafunc.fixturenames):
        metafunc.parametrize(name, transports, indirect=True)


@pytest.fixture
def host(request: pytest.FixtureRequest, principal: Principal) -> Iterator[Host]:
    """Connect a host for a caller of the local workspace, over each transport."""
    host = _host(request, principal)
    yield host
    host.close()


@pytest.fixture
def remote_host(request: pytest.FixtureRequest, remote: Principal) -> Iterator[Host]:
    """Connect a host for a caller of trust level remote."""
    host = _host(request, remote)
    yield host
    host.close()


def _host(request: pytest.FixtureRequest, principal: Principal) -> Host:
    if request.param == "stdio":
        return StdioHost(PrincipalTransport(principal))
    host_class = WebHost if request.param == "http" else SseHost
    token = create_token(name="host", trust=principal.trust)
    return host_class(request.getfixturevalue("web"), token)
