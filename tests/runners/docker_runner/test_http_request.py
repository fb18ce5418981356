"""The HTTP request tool of the reference runner: only allowed addresses, within its limits of time
and size."""

from __future__ import annotations

import asyncio
import base64
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from runners.docker_runner.errors import (
    NetworkClosed,
    RequestFailed,
    RunnerToolFailed,
    WrongArguments,
)
from runners.docker_runner.isolation.base import RunnerFolder
from runners.docker_runner.isolation.process import ProcessIsolation
from runners.docker_runner.tool import ToolEnvironment
from runners.docker_runner.tools.http_request import HttpRequest, http_request
from runners.network import egress

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nX-A: 2\r\n\r\nhello"


class Site:
    """A server that sends every client the same bytes and then nothing; it records the requests."""

    def __init__(self, answer: bytes, *, keeps_open: bool = False) -> None:
        self._answer, self._keeps_open = answer, keeps_open
        self.requests: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            self.requests.append(_request_of(caller))
            caller.sendall(self._answer)
            if self._keeps_open:
                self._open.append(caller)
            else:
                caller.close()

    def close(self) -> None:
        """Stop."""
        self._listener.close()
        for caller in self._open:
            caller.close()


def _request_of(caller: socket.socket) -> bytes:
    """Return a complete request."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += caller.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: ([0-9]+)", head.lower())
    while length and len(body) < int(length[1]):
        body += caller.recv(65536)
    return head + b"\r\n\r\n" + body


@pytest.fixture
def site_with(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Site]]:
    """Create sites that the operator allows to the runner."""
    sites: list[Site] = []

    def make(answer: bytes = OK, *, keeps_open: bool = False) -> Site:
        sites.append(Site(answer, keeps_open=keeps_open))
        monkeypatch.setenv("CONTINUITY_EGRESS_ALLOW", f"127.0.0.1:{sites[-1].port}")
        return sites[-1]

    yield make
    for site in sites:
        site.close()


def send_request(url: str, *, allow_net: bool = True, **args: Any) -> dict[str, Any]:
    """Send one request through the tool."""
    folder = RunnerFolder(Path("/"), allow_net=allow_net)
    env = ToolEnvironment(folder, ProcessIsolation(folder), lambda _: None)
    return dict(asyncio.run(http_request.function(HttpRequest(url=url, **args), env)))


def test_an_answer_has_status_headers_and_body(site_with: Callable[..., Site]) -> None:
    site = site_with()
    result = send_request(
        f"http://127.0.0.1:{site.port}/a?b=1", method="POST", body="é", headers={"X-Q": "1"}
    )
    assert (result["status"], result["body"], result["truncated"]) == (200, "hello", False)
    assert result["headers"]["x-a"] == "1, 2"
    head, _, body = site.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /a?b=1 HTTP/1.1\r\n")
    assert f"host: 127.0.0.1:{site.port}".encode() in head.lower()
    assert b"accept-encoding: identity" in head.lower()
    assert body == "é".encode()


def test_without_the_network_nothing_is_sent(site_with: Callable[..., Site]) -> None:
    site = site_with()
    with pytest.raises(NetworkClosed):
        send_request(f"http://127.0.0.1:{site.port}/", allow_net=False)
    assert site.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://[::ffff:127.0.0.1]/",
        "http://router.lan/",
    ],
)
def test_private_addresses_are_refused(url: str) -> None:
    with pytest.raises(NetworkClosed):
        send_request(url)


def resolve_names(monkeypatch: pytest.MonkeyPatch, addresses: Mapping[str, list[str]]) -> None:
    """Replace the system's resolver for the checks; the system itself does not know these names."""
    monkeypatch.setattr(egress, "_look_up", lambda host: addresses[host])


def test_a_name_that_resolves_to_a_private_address_is_refused(
    site_with: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = site_with()
    monkeypatch.delenv("CONTINUITY_EGRESS_ALLOW")
    resolve_names(monkeypatch, {"site.example": ["127.0.0.1"]})
    with pytest.raises(NetworkClosed):
        send_request(f"http://site.example:{site.port}/")
    assert site.requests == []


def test_a_request_connects_to_the_address_that_was_checked(
    site_with: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = site_with()
    resolve_names(monkeypatch, {"site.example": ["127.0.0.1"]})
    assert send_request(f"http://site.example:{site.port}/")["body"] == "hello"
    assert b"\r\nHost: site.example" in site.requests[0]


@pytest.mark.parametrize(
    "url", ["ftp://example.com/", "file:///etc/passwd", "http://", "x", "http://a b/"]
)
def test_an_invalid_web_address_is_a_wrong_argument(url: str) -> None:
    with pytest.raises(WrongArguments):
        send_request(url)


def test_a_redirect_is_returned_and_not_followed(site_with: Callable[..., Site]) -> None:
    site = site_with(
        b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
    )
    result = send_request(f"http://127.0.0.1:{site.port}/")
    assert (result["status"], result["headers"]["location"]) == (302, "http://169.254.169.254/")
    assert len(site.requests) == 1


def test_a_large_body_is_cut_and_a_binary_body_is_returned_as_base64(
    site_with: Callable[..., Site],
) -> None:
    site = site_with(b"HTTP/1.1 200 OK\r\n\r\n" + "é".encode() * 1000)
    result = send_request(f"http://127.0.0.1:{site.port}/", maxBytes=5)
    assert (result["body"], result["truncated"]) == ("éé", True)
    site = site_with(b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe")
    result = send_request(f"http://127.0.0.1:{site.port}/")
    assert (result["encoding"], base64.b64decode(result["body"])) == ("base64", b"\xff\xfe")


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"]
)
def test_an_incomplete_answer_fails(site_with: Callable[..., Site], answer: bytes) -> None:
    with pytest.raises(RequestFailed):
        send_request(f"http://127.0.0.1:{site_with(answer).port}/")


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\nbegun"])
def test_a_server_that_does_not_finish_is_abandoned_at_the_deadline(
    site_with: Callable[..., Site], answer: bytes
) -> None:
    with pytest.raises(RunnerToolFailed, match="within 400 ms"):
        send_request(f"http://127.0.0.1:{site_with(answer, keeps_open=True).port}/", timeoutMs=400)


def test_a_site_that_does_not_listen_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    monkeypatch.setenv("CONTINUITY_EGRESS_ALLOW", f"127.0.0.1:{port}")
    with pytest.raises(RequestFailed):
        send_request(f"http://127.0.0.1:{port}/")
