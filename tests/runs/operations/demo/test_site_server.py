"""The server of the demo site: its responses, what it refuses, and its shutdown."""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from collections.abc import Iterator

import httpx
import pytest

from runs.operations.demo.site import PAUSES_S, DemoSite


@pytest.fixture(scope="module")
def site() -> Iterator[DemoSite]:
    with DemoSite() as site:
        yield site


@pytest.fixture(scope="module")
def client(site: DemoSite) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=site.address, trust_env=False) as client:
        yield client


def send_raw(site: DemoSite, request: bytes) -> bytes:
    """Send raw bytes, which a client library would normalize, and read until the end."""
    with socket.create_connection(
        ("127.0.0.1", int(site.address.rpartition(":")[2]))
    ) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize(
    "path",
    [
        "/../site.py",
        "/assets/../../site.py",
        "/%2e%2e/site.py",
        "//etc/passwd",
        "/assets",
        "/pages/",
    ],
)
def test_a_path_outside_the_pages_is_not_found(site: DemoSite, path: str) -> None:
    response = send_raw(site, f"GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n".encode())
    assert response.startswith(b"HTTP/1.0 404 ")
    assert b"There is no page here" in response


@pytest.mark.parametrize("method", ["HEAD", "POST", "BREW"])
def test_only_get_is_answered(client: httpx.Client, method: str) -> None:
    assert client.request(method, "/").status_code == 501


def test_an_invalid_request_is_refused_and_the_site_keeps_serving(site: DemoSite) -> None:
    assert b"400" in send_raw(site, b"\x16\x03\x01 not http at all\r\n\r\n").split(b"\r\n")[0]
    assert httpx.get(site.address, trust_env=False).status_code == 200


@pytest.mark.slow
def test_every_address_but_the_last_is_found(site: DemoSite) -> None:
    with httpx.Client(follow_redirects=True, trust_env=False) as client:
        statuses = [client.get(url).status_code for url in site.urls]
    assert statuses == [200] * (len(site.urls) - 1) + [404]
    assert 14 <= len(site.urls) == len(set(site.urls)) <= 16


def test_an_old_address_redirects(client: httpx.Client) -> None:
    response = client.get("/start")
    assert (response.status_code, response.headers["Location"]) == (302, "/quick-start.html")


@pytest.mark.slow
def test_one_page_is_slow(client: httpx.Client) -> None:
    started = time.monotonic()
    assert client.get("/operations.html").status_code == 200
    assert time.monotonic() - started >= 1.5


def test_the_site_prints_nothing(site: DemoSite, capfd: pytest.CaptureFixture[str]) -> None:
    httpx.get(site.address + "/no-such-page.html", trust_env=False)
    send_raw(site, b"nonsense\r\n\r\n")
    assert capfd.readouterr() == ("", "")


def test_a_client_that_disconnects_early_causes_no_output(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with DemoSite() as site:
        connection = socket.create_connection(("127.0.0.1", int(site.address.rpartition(":")[2])))
        connection.sendall(b"GET /operations.html HTTP/1.1\r\n\r\n")
        time.sleep(0.1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    time.sleep(0.1)
    assert capfd.readouterr() == ("", "")


def test_closing_ends_slow_responses_and_frees_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PAUSES_S, "/operations.html", 60.0)
    others = set(threading.enumerate())
    with DemoSite() as site:
        port = int(site.address.rpartition(":")[2])
        slow = socket.create_connection(("127.0.0.1", port), timeout=20)
        slow.sendall(b"GET /operations.html HTTP/1.1\r\n\r\n")
        time.sleep(0.2)
    with slow:
        assert b"".join(iter(lambda: slow.recv(65536), b"")).endswith(b"</html>\n")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    deadline = time.monotonic() + 20
    while set(threading.enumerate()) - others:
        time.sleep(0.01)
        assert time.monotonic() < deadline


def test_two_sites_can_run_at_the_same_time(site: DemoSite) -> None:
    with DemoSite() as other:
        assert other.address != site.address
        assert httpx.get(other.address, trust_env=False).status_code == 200


def test_the_chinese_page_declares_its_language_and_encoding(client: httpx.Client) -> None:
    response = client.get("/about.zh.html")
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert '<html lang="zh-Hans">' in response.text
    assert len(re.findall(r"[\u4e00-\u9fff]", response.text)) > 400
