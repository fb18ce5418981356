"""Which REST calls have the trust level local: those from this machine, to a name of its own."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from django.http import HttpRequest, HttpResponse
from django.test import AsyncRequestFactory, override_settings

from config.asgi import application
from decisions.api.view import ApiView
from tests.support.rest import bearer

pytestmark = pytest.mark.usefixtures("principal")


def trust_level(token: str, peer: str, host: str = "127.0.0.1") -> str:
    """Return the trust level of a call from an address to a host name."""

    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app=application, client=(peer, 50_000))
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return await client.get("/api/v1/runtime/profile", headers=bearer(token))

    response = asyncio.run(call())
    assert response.status_code == 200, response.text
    return str(response.json()["trustLevel"])


def test_a_call_from_this_machine_to_itself_is_local(token: str) -> None:
    assert trust_level(token, "127.0.0.1") == "local"
    assert trust_level(token, "::1", "localhost") == "local"


def test_a_call_from_another_machine_is_remote(token: str) -> None:
    assert trust_level(token, "10.1.2.3") == "remote"


@override_settings(ALLOWED_HOSTS=["continuity.example"])
def test_a_call_to_a_public_name_is_remote(token: str) -> None:
    """A web page can have a name that resolves to this machine."""
    assert trust_level(token, "127.0.0.1", "continuity.example") == "remote"


class ViewWithoutScopes(ApiView):
    """A view whose author forgot `scopes`."""

    async def get(self, request: HttpRequest) -> HttpResponse:
        """Return a response that no caller should get."""
        return HttpResponse("private")


def test_a_view_without_scopes_refuses_every_token(token: str) -> None:
    request = AsyncRequestFactory().get("/", headers=bearer(token))
    response = asyncio.run(ViewWithoutScopes.as_view()(request))
    assert response.status_code == 403
