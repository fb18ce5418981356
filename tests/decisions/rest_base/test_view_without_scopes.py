"""A view without scopes refuses every caller."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import AsyncRequestFactory

from decisions.rest_base.view import ApiView
from tests.support.rest.rest import bearer


class ViewWithoutScopes(ApiView):
    """A view that names no scope for its method."""

    async def get(self, request: HttpRequest) -> HttpResponse:
        """Return a response that no caller gets."""
        return HttpResponse("private")


@pytest.mark.usefixtures("principal")
def test_a_view_without_scopes_refuses_every_token(token: str) -> None:
    request = AsyncRequestFactory().get("/", headers=bearer(token))
    view: Any = ViewWithoutScopes.as_view()
    response = asyncio.run(view(request))
    assert response.status_code == 403
