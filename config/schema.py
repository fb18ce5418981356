"""The OpenAPI document (/api/schema) and Swagger UI (/api/docs), both without a token and a CDN."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

from django.http import HttpResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response

from decisions.rest_base.drf import JSONRenderer
from decisions.rest_base.openapi import components
from decisions.rest_base.view import PublicView

# Swagger UI sets style attributes and has its icons in data: URLs.
DOCS_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)


@cache
def document() -> bytes:
    """Return the OpenAPI document as JSON, generated once per process."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    schema = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    names = (
        "runs",
        "sessions",
        "artifacts",
        "tools",
        "targets",
        "webhooks",
        "continuity",
        "audit",
        "health",
    )
    schema["tags"] = [{"name": name} for name in names]
    schema["components"].setdefault("schemas", {}).update(components())
    return JSONRenderer().render(schema)


class SchemaView(PublicView):
    """GET /api/schema."""

    @extend_schema(exclude=True)
    async def get(self, request: Request) -> HttpResponse:
        """Return the OpenAPI document."""
        return HttpResponse(await asyncio.to_thread(document), content_type="application/json")


class DocsView(SpectacularSwaggerSplitView):
    """GET /api/docs."""

    template_name = "decisions/api_docs.html"
    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return the page, or with `?script` the script that it loads."""
        response: Response = super().get(request, *args, **kwargs)  # type: ignore[no-untyped-call]
        response["Content-Security-Policy"] = DOCS_POLICY
        return response
