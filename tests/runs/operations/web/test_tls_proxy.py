"""The shipped configuration of nginx, run with nginx in front of the web server."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import pytest
from django.contrib.auth.models import User
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from config.asgi import Dispatcher
from decisions.identity.principals import Principal, create_token
from decisions.models import AuditEntry
from runs.management.commands.serve import web_config
from runs.models import Run
from tests.support.installation.tls_proxy import NGINX, PROXY_ADDRESS, TlsProxy, run_proxy
from tests.support.rest.rest import NO_TLS, bearer
from tests.support.rest.rest_server import close_pooled_connections, run_server

pytestmark = pytest.mark.skipif(NGINX is None, reason="needs nginx")
PASSWORD = "correct horse battery"
CLIENT = "127.0.0.3"  # the address that the tests' client connects from
FORGED = {
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Proto": "http",
    "X-Forwarded-Host": "evil.example",
    "Forwarded": "for=203.0.113.9;proto=http",
}


@pytest.fixture
def server(principal: Principal, settings: Any) -> Iterator[str]:
    """Yield the address of a web server that trusts the proxy, with an https public URL."""
    settings.TRUSTED_PROXIES = (ipaddress.ip_network(PROXY_ADDRESS),)
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    settings.SECURE_HSTS_SECONDS = 1000
    settings.SECURE_SSL_REDIRECT, settings.SECURE_SSL_HOST = True, "continuity.example"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    config = web_config()
    config.app = cast(Any, Dispatcher())  # its middleware reads the settings when it is created
    with run_server(config) as address:
        yield address
    close_pooled_connections()


@pytest.fixture
def proxy(server: str, tmp_path: Path) -> Iterator[TlsProxy]:
    """Yield nginx in front of the server, with short time limits."""
    changes = {
        "client_header_timeout 10s;": "client_header_timeout 1s;",
        "limit_conn connections 500;": "limit_conn connections 3;",
    }
    with run_proxy(server, tmp_path, changes) as running:
        yield running


@pytest.fixture
def client(proxy: TlsProxy) -> Iterator[httpx.Client]:
    """Yield a client of the proxy that verifies its certificate."""
    transport = httpx.HTTPTransport(verify=proxy.tls, local_address=CLIENT)
    with httpx.Client(base_url=proxy.https, transport=transport, timeout=30) as opened:
        yield opened


def sign_in(client: httpx.Client, name: str, password: str, **headers: str) -> httpx.Response:
    """Sign in to the admin as a browser does."""
    page = client.get("/admin/login/")
    form_token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert form_token is not None, page.text
    form = {"username": name, "password": password, "csrfmiddlewaretoken": form_token[1]}
    origin = {"Origin": str(client.base_url).rstrip("/")}
    return client.post("/admin/login/", data=form, headers={**origin, **headers})


def test_a_sign_in_over_tls_gets_secure_cookies(client: httpx.Client) -> None:
    name = f"ann-{secrets.token_hex(4)}"
    User.objects.create_superuser(name, password=PASSWORD)
    response = sign_in(client, name, PASSWORD)
    assert response.status_code == 302, response.text
    cookies = response.headers.get_list("set-cookie")
    assert {text.partition("=")[0] for text in cookies} == {
        "continuity_session",
        "continuity_csrf",
        "continuity_browser",
    }
    assert all("; Secure" in text for text in cookies)
    page = client.get("/admin/")
    assert page.status_code == 200
    assert page.headers["strict-transport-security"] == "max-age=1000"
    assert AuditEntry.objects.get(action="operator.signed_in").metadata["peer"] == CLIENT


def test_plain_http_is_redirected_at_the_proxy_and_at_the_server(
    proxy: TlsProxy, server: str
) -> None:
    at_proxy = httpx.get(f"{proxy.http}/admin/?x=1", verify=NO_TLS)
    assert (at_proxy.status_code, at_proxy.headers["location"]) == (
        301,
        "https://127.0.0.1/admin/?x=1",
    )
    at_server = httpx.get(f"{server}/admin/", verify=NO_TLS)
    assert at_server.headers["location"] == "https://continuity.example/admin/"
    assert httpx.get(f"{server}/healthz", verify=NO_TLS).status_code == 200


def test_forged_headers_change_neither_the_address_nor_the_scheme(
    client: httpx.Client, server: str
) -> None:
    assert sign_in(client, "nobody", "wrong", **FORGED).status_code == 200
    (row,) = AuditEntry.objects.filter(action="operator.sign_in_failed")
    assert row.metadata["peer"] == CLIENT
    # Not through the proxy: a client that is not trusted.
    forged = {**FORGED, "X-Forwarded-Proto": "https"}
    direct = httpx.get(f"{server}/admin/login/", headers=forged, verify=NO_TLS)
    assert direct.status_code == 301
    unknown = {**forged, **bearer("cty_unknown")}
    assert httpx.get(f"{server}/api/v1/runs", headers=unknown, verify=NO_TLS).status_code == 401
    (row,) = AuditEntry.objects.filter(action="access.refused")
    assert row.metadata["peer"] == "127.0.0.1"


def test_a_caller_behind_the_proxy_is_not_local(client: httpx.Client, server: str) -> None:
    assert client.get("/metrics").status_code == 401
    assert httpx.get(f"{server}/metrics", verify=NO_TLS).status_code == 200


def test_events_arrive_while_the_stream_is_open_and_streams_per_client_are_limited(
    client: httpx.Client, submit: Callable[..., str], token: str
) -> None:
    path, headers = f"/api/v1/runs/{submit()}/events", bearer(token)
    Run.objects.update(trust="remote")  # a caller behind a proxy sees no local caller's run
    headers["Accept"] = "text/event-stream"
    with (
        client.stream("GET", path, headers=headers) as first,
        client.stream("GET", path, headers=headers) as second,
        client.stream("GET", path, headers=headers) as third,
    ):
        streams = [stream.iter_text() for stream in (first, second, third)]
        assert all("run." in next(stream) for stream in streams)
        assert client.get("/healthz").status_code == 429
    deadline = time.monotonic() + 10
    while client.get("/healthz").status_code != 200:
        assert time.monotonic() < deadline


def test_a_websocket_passes(proxy: TlsProxy, token: str) -> None:
    async def talk() -> int | None:
        url = proxy.https.replace("https:", "wss:") + "/ws/tasks/task_unknown"
        async with connect(url, ssl=proxy.tls, additional_headers=bearer(token)) as socket:
            try:
                await asyncio.wait_for(socket.recv(), 10)
            except ConnectionClosed as closed:
                return closed.rcvd.code if closed.rcvd else None
        return None

    assert asyncio.run(talk()) == 4404


@pytest.mark.parametrize(
    ("path", "size", "by_server"),
    [
        ("/api/v1/runs", 2 * 2**20, True),
        ("/api/v1/runs", 17 * 2**20, False),
        ("/admin/login/", 65 * 1024, False),
    ],
)
def test_large_bodies_are_refused(
    client: httpx.Client, path: str, size: int, by_server: bool
) -> None:
    token = create_token(name="large")
    headers = {**bearer(token), "Content-Type": "application/json"}
    try:
        response = client.post(path, content=b" " * size, headers=headers)
    except httpx.WriteError:
        assert not by_server  # nginx closed the connection while the client was still sending
        return
    assert response.status_code == 413
    assert (response.headers["content-type"] == "application/json") == by_server


def test_a_slow_head_is_cut(proxy: TlsProxy) -> None:
    parts = urlsplit(proxy.https)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection((str(parts.hostname), int(parts.port or 0)), timeout=10)
    with context.wrap_socket(plain) as connection:
        started = time.monotonic()
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        while connection.recv(65_536):
            pass
        assert 0.5 < time.monotonic() - started < 8
