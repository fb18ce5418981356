"""Cross-origin resource sharing: which web pages of other origins may call the REST API.

A page authenticates with a bearer token, as every caller does. Cookies are never allowed: the
responses have no `Access-Control-Allow-Credentials`, and the API reads none.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
# What clients send besides the headers that browsers always allow, and read besides those.
REQUEST_HEADERS = (
    "Authorization",
    "If-Match",
    "If-None-Match",
    "If-Range",
    "Last-Event-ID",
    "Range",
    "traceparent",
)
RESPONSE_HEADERS = (
    "Accept-Ranges",
    "Content-Disposition",
    "Content-Range",
    "ETag",
    "Location",
    "Retry-After",
    "WWW-Authenticate",
)
PREFLIGHT_S = 600  # for which a browser keeps the answer to a preflight request


def allow_origins(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Return the application, callable by pages of these origins; unchanged without any."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=METHODS,
        allow_headers=REQUEST_HEADERS,
        expose_headers=RESPONSE_HEADERS,
        max_age=PREFLIGHT_S,
    )
