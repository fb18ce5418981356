"""The SOCKS5 egress proxy of a remote session, tested at the byte level."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from runners.network import peer_owner
from runners.network import proxy as network_proxy
from runners.network.allowlist import Address
from runners.network.egress import EgressPolicy
from runners.network.proxy import EgressProxy
from tests.support.browser.forbidden_server import PUBLIC, egress_policy_allowing

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
ProxyTest = Callable[[EgressProxy, int], Awaitable[Any]]
clients: list[asyncio.StreamWriter] = []  # of the running test; closed when it ends
GRANTED, NOT_ALLOWED, UNREACHABLE, REFUSED, NOT_SUPPORTED = 0, 2, 4, 5, 7


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send received data back until the stream ends."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.transport.abort()


def run_with_proxy(
    test: ProxyTest, *, serve: Callable[..., Any] = echo, policy: EgressPolicy | None = None
) -> Any:
    """Run a test with a proxy and the port of a server that counts as public."""

    async def go() -> Any:
        connections: set[asyncio.Task[Any]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections.add(asyncio.create_task(serve(reader, writer)))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        proxy = await EgressProxy.open(policy or egress_policy_allowing(port))
        try:
            async with asyncio.timeout(30):
                return await test(proxy, port)
        finally:
            await proxy.close()
            server.close()
            while clients:
                clients.pop().close()
            for connection in connections:
                connection.cancel()
            await asyncio.gather(*connections, return_exceptions=True)
            await asyncio.sleep(0)  # let the closed transports finish

    return asyncio.run(go())


async def connect(proxy: EgressProxy, greeting: bytes = b"\x05\x01\x00") -> Stream:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    clients.append(writer)
    writer.write(greeting)
    return reader, writer


def request(host: str, port: int, command: int = 1) -> bytes:
    name = host.encode()
    return bytes((5, command, 0, 3, len(name))) + name + port.to_bytes(2, "big")


async def request_tunnel(
    proxy: EgressProxy, host: str, port: int, **options: int
) -> tuple[int, Stream]:
    """Request a tunnel and return the proxy's reply code and the streams."""
    reader, writer = await connect(proxy)
    assert await reader.readexactly(2) == b"\x05\x00"
    writer.write(request(host, port, **options))
    answer = await reader.readexactly(10)
    return answer[1], (reader, writer)


def test_any_amount_of_data_passes_unchanged_in_both_directions() -> None:
    sent = os.urandom(3_000_000)

    async def test(proxy: EgressProxy, port: int) -> bytes:
        answer, (reader, writer) = await request_tunnel(proxy, PUBLIC, port)
        assert answer == GRANTED
        writer.write(sent)
        return await reader.readexactly(len(sent))

    assert run_with_proxy(test) == sent


@pytest.mark.slow
def test_a_server_that_does_not_read_slows_the_client_down() -> None:
    async def never_read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            writer.transport.abort()

    async def test(proxy: EgressProxy, port: int) -> int:
        _, (_, writer) = await request_tunnel(proxy, PUBLIC, port)
        sent = 0
        try:
            async with asyncio.timeout(2):
                while sent < 200_000_000:
                    writer.write(bytes(1_000_000))
                    await writer.drain()
                    sent += 1_000_000
        except TimeoutError:
            writer.transport.abort()
        return sent

    assert run_with_proxy(test, serve=never_read) < 100_000_000


@pytest.mark.parametrize(
    ("host", "answer", "outcome"),
    [
        ("127.0.0.2", NOT_ALLOWED, "forbidden"),
        ("::1", NOT_ALLOWED, "forbidden"),
        ("169.254.169.254", NOT_ALLOWED, "forbidden"),
        ("localhost", NOT_ALLOWED, "forbidden"),
        ("nobody.example", UNREACHABLE, "ERR_NAME_NOT_RESOLVED"),
    ],
)
def test_an_unreachable_host_is_answered_and_recorded(host: str, answer: int, outcome: str) -> None:
    async def test(proxy: EgressProxy, port: int) -> tuple[int, str | None]:
        reply, (reader, _) = await request_tunnel(proxy, host, port)
        assert await reader.read() == b""
        return reply, proxy.failed_connections.get(host, port)

    assert run_with_proxy(test) == (answer, outcome)


def test_an_allowed_host_is_closed_on_other_ports() -> None:
    async def test(proxy: EgressProxy, port: int) -> int:
        return (await request_tunnel(proxy, PUBLIC, port - 1))[0]

    assert run_with_proxy(test) == NOT_ALLOWED


def test_a_port_without_a_listener_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    async def test(proxy: EgressProxy, _: int) -> int:
        return (await request_tunnel(proxy, PUBLIC, port))[0]

    assert run_with_proxy(test, policy=egress_policy_allowing(port)) == REFUSED


def test_the_proxy_connects_to_the_checked_address_despite_dns_rebinding() -> None:
    lookups: list[str] = []

    async def resolve(host: str) -> Sequence[Address]:
        lookups.append(host)
        return (ipaddress.ip_address("127.0.0.1" if len(lookups) == 1 else "127.0.0.9"),)

    def permits(address: Address, port: int) -> bool:
        return str(address) == "127.0.0.1"

    async def test(proxy: EgressProxy, port: int) -> list[int]:
        answers = [(await request_tunnel(proxy, "rebound.example", port))[0] for _ in range(3)]
        proxy._names.clear()  # as after the cache lifetime of a minute
        return [*answers, (await request_tunnel(proxy, "rebound.example", port))[0]]

    policy = EgressPolicy(resolve=resolve, permits=permits)
    assert run_with_proxy(test, policy=policy) == [GRANTED] * 3 + [NOT_ALLOWED]
    assert len(lookups) == 2


@pytest.mark.parametrize(
    "data",
    [
        b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT a.example:443 HTTP/1.1\r\n\r\n",
        b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00",
        b"\x05\x01\x02",
        b"\x05\x00",
        b"\x05\x01\x00" + request(PUBLIC, 80, command=2),
        b"\x05\x01\x00" + request(PUBLIC, 80, command=3),
        b"\x05\x01\x00" + request("a\0b", 80),
        b"\x05\x01\x00" + request("", 80),
        b"\x05\x01\x00" + request(PUBLIC, 0),
        b"\x05\x01\x00\x05\x01\x00\x07",
        b"\x05\x01\x00\xff\xff\xff\xff",
    ],
)
def test_an_invalid_request_gets_no_tunnel(data: bytes) -> None:
    async def test(proxy: EgressProxy, port: int) -> bytes:
        reader, writer = await connect(proxy, data)
        writer.write_eof()
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""

    assert run_with_proxy(test) in (b"", b"\x05\x00", b"\x05\x00\x05\x07\x00\x01" + bytes(6))


def test_a_request_that_arrives_too_slowly_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_proxy, "REQUEST_SECONDS", 0.2)

    async def test(proxy: EgressProxy, port: int) -> bytes:
        reader, _ = await connect(proxy, b"\x05")
        return await reader.read()

    assert run_with_proxy(test) == b""


def test_an_idle_tunnel_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_proxy, "IDLE_SECONDS", 0.2)

    async def test(proxy: EgressProxy, port: int) -> bytes:
        _, (reader, _) = await request_tunnel(proxy, PUBLIC, port)
        return await reader.read()

    assert run_with_proxy(test) == b""


def test_the_number_of_connections_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_proxy, "MAX_CONNECTIONS", 2)

    async def test(proxy: EgressProxy, port: int) -> None:
        assert [(await request_tunnel(proxy, PUBLIC, port))[0] for _ in range(2)] == [GRANTED] * 2
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await request_tunnel(proxy, PUBLIC, port)

    run_with_proxy(test)


def test_closing_the_proxy_closes_its_tunnels_and_frees_its_port() -> None:
    async def test(proxy: EgressProxy, port: int) -> None:
        _, (reader, _) = await request_tunnel(proxy, PUBLIC, port)
        freed_port = proxy.port
        await proxy.close()
        await proxy.close()
        assert await reader.read() == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", freed_port)

    run_with_proxy(test)


PYTHON = "/usr/bin/python3"
CLIENT_SCRIPT = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.sendall(b"\\x05\\x01\\x00")
sys.stdout.write("sent ")
try:
    sys.stdout.write(connection.recv(2).hex())
except ConnectionError:
    pass
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv") or not Path(PYTHON).exists(),
    reason="needs two users and a Python for both",
)
@pytest.mark.parametrize(("user", "answer"), [("nobody", "sent "), ("root", "sent 0500")])
def test_another_users_process_gets_no_answer(user: str, answer: str) -> None:
    async def test(proxy: EgressProxy, port: int) -> str:
        command = ["setpriv", f"--reuid={user}", "--clear-groups", PYTHON, "-c"]
        pipe = subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, CLIENT_SCRIPT, str(proxy.port), stdout=pipe, cwd="/"
        )
        return (await process.communicate())[0].decode()

    assert sys.platform != "linux" or run_with_proxy(test) == answer


def test_a_connection_is_accepted_when_the_system_does_not_report_its_owner(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    addresses = ("127.0.0.1", 1), ("127.0.0.1", 2)
    for table in (tmp_path / "none", tmp_path / "empty"):
        monkeypatch.setattr(peer_owner, "TABLE", table)
        assert not peer_owner.is_from_another_user(*addresses)
        (tmp_path / "empty").write_text("")
