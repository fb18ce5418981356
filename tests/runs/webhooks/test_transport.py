"""One POST to a webhook's address: only to allowed addresses, bounded, without following
redirects."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator

import httpcore2
import pytest

from runners.network import egress
from runners.trust_level import TrustLevel
from runs.webhooks import transport
from runs.webhooks.deliveries import WebhookResponse
from runs.webhooks.transport import may_reach, post
from tests.services import free_port
from tests.support.runs.webhook_receiver import run_receiver


def send(url: str, trust: TrustLevel = "local") -> WebhookResponse:
    return asyncio.run(post(url, trust=trust, headers={"webhook-id": "m"}, body=b"{}"))


@contextlib.contextmanager
def serve_once(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that reads the start of one request, then calls the function with its connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    answer(connection)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):  # else what is unread resets the connection
                        pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
    thread.join(10)


@pytest.mark.parametrize("status", [200, 204, 400, 410, 500])
def test_the_status_is_returned(status: int) -> None:
    with run_receiver(status) as receiver:
        answer = send(receiver.url + "?a=b")
    assert (answer.status_code, answer.is_success) == (status, status < 300)
    assert (receiver.requests[0].path, receiver.requests[0].body) == ("/hook?a=b", b"{}")
    assert receiver.requests[0].headers["webhook-id"] == "m"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with run_receiver() as other, run_receiver(status) as receiver:
        receiver.headers["Location"] = other.url
        assert send(receiver.url) == WebhookResponse(status, f"answered {status}")
    assert other.requests == []


def test_informational_responses_are_skipped() -> None:
    response = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"
    with serve_once(lambda connection: connection.sendall(response)) as url:
        assert send(url).status_code == 201


@pytest.mark.parametrize(
    "response",
    [b"", b"hello\r\n\r\n", b"HTTP/2 200\r\n\r\n", b"\x00" * 99999],
    ids=["nothing", "no http", "another http", "no end"],
)
def test_a_response_that_is_not_http_is_reported(response: bytes) -> None:
    with serve_once(lambda connection: connection.sendall(response)) as url:
        answer = send(url)
    assert (answer.status_code, "does not speak HTTP" in answer.error) == (None, True)


def test_an_endless_body_is_cut() -> None:
    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    started = time.monotonic()
    with serve_once(flood) as url:
        assert send(url).status_code == 200
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("piece", [b"", b"H"], ids=["silent", "trickling"])
def test_a_slow_response_times_out(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "TIMEOUT_S", 1.0)

    def trickle(connection: socket.socket) -> None:
        for _ in range(20):
            connection.send(piece)
            time.sleep(0.1)

    started = time.monotonic()
    with serve_once(trickle) as url:
        assert send(url).error == "no answer within 1 s"
        assert time.monotonic() - started < 5


def test_a_refused_connection_is_reported() -> None:
    assert send(f"http://127.0.0.1:{free_port()}/").status_code is None


def test_a_name_that_does_not_exist_is_reported() -> None:
    assert "unknown" in send("http://nowhere.invalid/").error


def test_plain_http_on_a_secure_port_is_no_response() -> None:
    with run_receiver() as receiver:
        answer = send(receiver.url.replace("http:", "https:"))
    assert (answer.status_code, receiver.requests) == (None, [])


@pytest.mark.parametrize(
    "name", ["http://localhost/", "http://127.0.0.1/", "http://[::1]/", "http://10.0.0.1/"]
)
def test_a_remote_callers_webhook_reaches_no_private_address(name: str) -> None:
    assert "public" in send(name, "remote").error


@pytest.mark.parametrize(
    "private_address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fe80::1"]
)
def test_a_public_name_with_a_private_address_is_refused(
    private_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(egress, "_look_up", lambda host: ["93.184.216.34", private_address])
    answer = send("http://public.example/", "remote")
    assert answer == WebhookResponse(
        None,
        "The host name or one of its addresses is not allowed. The operator can allow it in"
        " CONTINUITY_EGRESS_ALLOW.",
    )


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1", True),
        ("192.168.1.9", True),
        ("::1", True),
        ("fd12::1", True),
        ("169.254.169.254", False),
        ("fd00:ec2::254", False),
        ("fe80::1", False),
        ("0.0.0.0", False),
        ("100.100.100.200", False),
        ("224.0.0.1", False),
        ("::ffff:169.254.169.254", False),
        ("::ffff:127.0.0.1", True),
    ],
)
def test_a_local_callers_webhook_reaches_this_network_but_no_metadata_service(
    address: str, local: bool
) -> None:
    found = ipaddress.ip_address(address)
    assert (may_reach(found, 80, "local"), may_reach(found, 80, "remote")) == (local, False)


def test_a_remote_callers_webhook_reaches_only_web_ports() -> None:
    public = ipaddress.ip_address("93.184.216.34")
    reached = [port for port in (22, 25, 80, 443, 6667, 8443) if may_reach(public, port, "remote")]
    assert reached == [80, 443, 8443]


def test_a_remote_callers_webhook_does_not_reach_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    public = ipaddress.ip_address("93.184.216.34")
    monkeypatch.setattr(egress, "is_own_address", lambda address: address == public)
    assert not may_reach(public, 443, "remote")
    assert may_reach(public, 443, "local")


def test_the_checked_address_is_connected_to_whatever_the_name_resolves_to_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connected: list[str] = []

    async def connect(self: object, host: str, *args: object) -> None:
        connected.append(host)
        raise httpcore2.ConnectError

    monkeypatch.setattr(egress, "_look_up", lambda host: ["93.184.216.34"])
    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect)
    assert send("http://public.example/", "remote").status_code is None
    assert connected == ["93.184.216.34"]
