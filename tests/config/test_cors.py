"""Pages of listed origins may call the REST API, with a token and without cookies."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from django.core.exceptions import ImproperlyConfigured
from environ import Env

from config.asgi import Dispatcher
from config.web import origins
from decisions.identity.principals import Principal

NAME = "CONTINUITY_OF_A_TEST"
APP, OTHER = "https://app.example", "https://app.example.evil.example"
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization, content-type",
}


@pytest.fixture
def server(settings: Any, principal: Principal) -> Dispatcher:
    """Start the application with one listed origin."""
    settings.CORS_ORIGINS = (APP,)
    settings.ALLOWED_HOSTS = ["testserver"]
    return Dispatcher()


def send(server: Dispatcher, method: str, path: str, origin: str, **headers: str) -> httpx.Response:
    """Send a request of a page of this origin."""

    async def exchange() -> httpx.Response:
        transport = httpx.ASGITransport(app=server)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            return await client.request(method, path, headers={"Origin": origin, **headers})

    return asyncio.run(exchange())


def test_a_page_of_a_listed_origin_may_send_a_token(server: Dispatcher) -> None:
    answer = send(server, "OPTIONS", "/api/v1/runs", APP, **PREFLIGHT)
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == APP
    assert "Authorization" in answer.headers["Access-Control-Allow-Headers"]
    assert "POST" in answer.headers["Access-Control-Allow-Methods"]
    assert "Access-Control-Allow-Credentials" not in answer.headers


def test_it_reads_answers_and_errors_and_their_headers(server: Dispatcher) -> None:
    answer = send(server, "GET", "/api/v1/runs", APP, Cookie="continuity_session=a")
    assert answer.status_code == 401
    assert answer.headers["Access-Control-Allow-Origin"] == APP
    assert "Retry-After" in answer.headers["Access-Control-Expose-Headers"]
    assert "Origin" in answer.headers["Vary"]
    assert "Access-Control-Allow-Credentials" not in answer.headers
    too_large = send(server, "GET", "/api/v1/runs", APP, **{"X-Long": "a" * 70_000})
    assert too_large.status_code == 431
    assert too_large.headers["Access-Control-Allow-Origin"] == APP


@pytest.mark.parametrize(
    "origin", [OTHER, "https://app.example:8443", "http://app.example", "null"]
)
def test_a_page_of_another_origin_may_not(server: Dispatcher, origin: str) -> None:
    preflight = send(server, "OPTIONS", "/api/v1/runs", origin, **PREFLIGHT)
    assert preflight.status_code == 400
    answer = send(server, "GET", "/api/v1/runs", origin)
    for one in (preflight, answer):
        assert "Access-Control-Allow-Origin" not in one.headers


@pytest.mark.parametrize("path", ["/healthz", "/admin/login/", "/mcp", "/api/schema"])
def test_nothing_but_the_rest_api_is_open_to_other_origins(server: Dispatcher, path: str) -> None:
    assert "Access-Control-Allow-Origin" not in send(server, "GET", path, APP).headers


def test_no_origin_is_listed_by_default(settings: Any, principal: Principal) -> None:
    assert settings.CORS_ORIGINS == ()
    settings.ALLOWED_HOSTS = ["testserver"]
    answer = send(Dispatcher(), "OPTIONS", "/api/v1/runs", APP, **PREFLIGHT)
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_origins_are_read_as_browsers_send_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "https://App.example:443, http://127.0.0.1:5173,http://[::1]:80")
    expected = ("https://app.example", "http://127.0.0.1:5173", "http://[::1]")
    assert origins(Env(), NAME) == expected


@pytest.mark.parametrize(
    "text",
    [
        "*",
        "app.example",
        "https://*.example",
        "https://a.example/",
        "https://a.example?q",
        "null",
        "ftp://a.example",
        "https://u:p@a.example",
        "https://a.example:99999",
        "https://",
    ],
)
def test_what_is_no_origin_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(ImproperlyConfigured, match=NAME):
        origins(Env(), NAME)
