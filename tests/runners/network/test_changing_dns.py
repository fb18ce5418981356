"""A name server that changes its answer between the check of a name and the connection: every way
out connects to the address that was checked, and checks a later answer again.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.client import parse_headers
from pathlib import Path
from typing import Any

import pytest

from runners.docker_runner.isolation.base import RunnerFolder
from runners.docker_runner.isolation.process import ProcessIsolation
from runners.docker_runner.tool import ToolEnvironment
from runners.docker_runner.tools.http_request import HttpRequest, http_request
from runners.errors import ToolFailed
from runners.gateway.client import call_runner
from runners.gateway.connections import close_pool
from runners.gateway.probe import fetch_published_tools, probe_runner
from runners.network.egress import EgressPolicy
from runners.network.loopback import LoopbackOnly
from runners.network.proxy import EgressProxy
from runners.tools.base import ToolCall
from runs.webhooks.transport import post
from tests.support.runners.runner_calls import call_context, target_at

OUTSIDE, INSIDE = "127.0.0.2", "127.0.0.1"  # of these, the operator allows only the first
NAME = "changing.example"
BODY = b'{"ok": true, "output": "outside"}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
Way = Callable[[str], Awaitable[bool]]


class Site:
    """A server that answers every request on kept connections, and counts connections."""

    def __init__(self, address: str, port: int = 0) -> None:
        self.connections = 0
        self._listener = socket.create_server((address, port))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as requests, contextlib.suppress(OSError):
            while requests.readline():  # a request may arrive in several pieces
                requests.read(int(parse_headers(requests).get("Content-Length", 0)))
                client.sendall(ANSWER)


class NameServer:
    """Answers lookups of NAME with one list of addresses after the other; the last one remains."""

    def __init__(self) -> None:
        self.answers: list[list[str]] = [[OUTSIDE]]
        self.lookups = 0
        self._system = socket.getaddrinfo

    def getaddrinfo(self, host: Any, port: Any, *args: Any, **options: Any) -> Any:
        """Stand for `socket.getaddrinfo`."""
        if host != NAME:
            return self._system(host, port, *args, **options)
        self.lookups += 1
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            found
            for address in addresses
            for found in self._system(address, port, type=socket.SOCK_STREAM)
        ]


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> NameServer:
    """Return the name server, which answers all lookups of this process."""
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server.getaddrinfo)
    return server


@pytest.fixture
def sites(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Site, Site]]:
    """Yield the servers outside and inside, on the same port."""
    outside, inside = _two_sites()
    monkeypatch.setenv("CONTINUITY_EGRESS_ALLOW", f"{OUTSIDE}:{outside.port}")
    yield outside, inside
    outside.close()
    inside.close()


def _two_sites() -> tuple[Site, Site]:
    for _ in range(20):
        outside = Site(OUTSIDE)
        try:
            return outside, Site(INSIDE, outside.port)
        except OSError:  # another program has this port
            outside.close()
    raise AssertionError("no port is free on both addresses")


async def by_http_request(url: str) -> bool:
    folder = RunnerFolder(Path("/"), allow_net=True)
    env = ToolEnvironment(folder, ProcessIsolation(folder), lambda _: None)
    try:
        result = await http_request.function(HttpRequest(url=url), env)
    except ToolFailed:
        return False
    return bool(result["status"] == 200)


async def by_webhook(url: str) -> bool:
    return (await post(url, trust="remote", headers={}, body=b"{}")).status_code == 200


async def by_runner_call(url: str) -> bool:
    call = ToolCall("bash.exec", {"cmd": "true"})
    result = await call_runner(call, call_context(), target_at(url))
    await close_pool()
    return result.ok


async def by_runner_probe(url: str) -> bool:
    result = await probe_runner(url, None)
    await close_pool()
    return result.is_up


async def by_list_of_tools(url: str) -> bool:
    result = await fetch_published_tools(url, None)
    await close_pool()
    return bool(result.body)


async def by_browser_proxy(url: str) -> bool:
    """Request a tunnel as Chromium does; each session has a proxy of its own."""
    port = int(url.rpartition(":")[2].strip("/"))
    proxy = await EgressProxy.open(EgressPolicy())
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    name = NAME.encode()
    writer.write(b"\5\1\0" + bytes((5, 1, 0, 3, len(name))) + name + port.to_bytes(2, "big"))
    answer = await reader.readexactly(12)
    writer.close()
    await proxy.close()
    return answer[3] == 0


WAYS = (
    by_http_request,
    by_webhook,
    by_runner_call,
    by_runner_probe,
    by_list_of_tools,
    by_browser_proxy,
)


@pytest.mark.parametrize(
    "later", [[INSIDE], [OUTSIDE, INSIDE], ["::ffff:127.0.0.1"], ["::1"], ["169.254.169.254"]]
)
@pytest.mark.parametrize("way", WAYS)
def test_a_changed_answer_is_checked_before_it_is_used(
    name_server: NameServer, sites: tuple[Site, Site], way: Way, later: list[str]
) -> None:
    outside, inside = sites
    name_server.answers = [[OUTSIDE], later]

    async def twice() -> list[bool]:
        return [await way(f"http://{NAME}:{outside.port}/") for _ in range(2)]

    assert asyncio.run(twice()) == [True, False]
    assert (outside.connections, inside.connections) == (1, 0)
    assert name_server.lookups == 2, "a name was resolved again after it was checked"


def test_a_kept_connection_of_a_runner_stays_with_the_address_that_was_checked(
    name_server: NameServer, sites: tuple[Site, Site]
) -> None:
    outside, inside = sites
    name_server.answers = [[OUTSIDE], [INSIDE]]
    call = ToolCall("bash.exec", {"cmd": "true"})
    target = target_at(f"http://{NAME}:{outside.port}/")

    async def calls() -> list[bool]:
        results = [(await call_runner(call, call_context(), target)).ok for _ in range(3)]
        await close_pool()
        return [*results, (await call_runner(call, call_context(), target)).ok]

    assert asyncio.run(calls()) == [True, True, True, False]
    assert (outside.connections, inside.connections) == (1, 0)
    assert name_server.lookups == 2


def test_a_preview_resolves_no_name(name_server: NameServer, sites: tuple[Site, Site]) -> None:
    async def request() -> bytes:
        proxy = await EgressProxy.open(LoopbackOnly())
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        name = NAME.encode()
        port = sites[1].port.to_bytes(2, "big")
        writer.write(b"\5\1\0" + bytes((5, 1, 0, 3, len(name))) + name + port)
        answer = await reader.readexactly(12)
        writer.close()
        await proxy.close()
        return answer

    name_server.answers = [[INSIDE]]
    assert asyncio.run(request())[3] == 2  # not allowed
    assert (name_server.lookups, sites[1].connections) == (0, 0)
