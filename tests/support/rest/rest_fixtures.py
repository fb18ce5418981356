"""Fixtures for tests over REST: the real server on a free port, in a thread of this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from decisions.identity.principals import DEFAULT_SCOPES, Principal, create_token
from runs.management.commands.serve import web_config
from tests.support.rest.rest import NO_TLS, bearer
from tests.support.rest.rest_server import TIMEOUT_S, close_pooled_connections, run_server

MakeClient = Callable[..., httpx.Client]


@pytest.fixture(scope="session")
def web(django_db_setup: None) -> Iterator[str]:
    """Yield the address of a server that uses this process's database."""
    with run_server(web_config()) as address:
        # The server reads its toolsets at the first MCP request: before a test changes them.
        httpx.get(f"{address}/mcp", timeout=TIMEOUT_S, verify=NO_TLS)
        yield address
    close_pooled_connections()


@pytest.fixture
def anonymous(web: str, principal: Principal) -> Iterator[httpx.Client]:
    """Yield a client without a token."""
    with httpx.Client(base_url=web, timeout=TIMEOUT_S, verify=NO_TLS) as client:
        yield client


@pytest.fixture
def api(web: str, token: str) -> Iterator[httpx.Client]:
    """Yield a client with every default scope and trust level local, in the local workspace."""
    with _client(web, token) as client:
        yield client


@pytest.fixture
def client_with(web: str, principal: Principal) -> Iterator[MakeClient]:
    """Create clients: `client_with(scopes={"runs:read"}, trust="remote", workspace="w")`."""
    with contextlib.ExitStack() as clients:

        def make(*, scopes: frozenset[str] = DEFAULT_SCOPES, **options: Any) -> httpx.Client:
            token = create_token(name="test", scopes=frozenset(scopes), **options)
            return clients.enter_context(_client(web, token))

        yield make


def _client(web: str, token: str) -> httpx.Client:
    return httpx.Client(base_url=web, headers=bearer(token), timeout=TIMEOUT_S, verify=NO_TLS)
