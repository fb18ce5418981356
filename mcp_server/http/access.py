"""Who calls over HTTP: the host that is asked for, the page that asks, and the token."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.utils.http import is_same_domain

from decisions.api.drf import authenticate_request, throttle_request
from decisions.errors import Forbidden, NotAuthenticated
from decisions.identity.principals import Principal
from mcp_server.protocol.request_context import MessageContext


class HostNotAllowed(Forbidden):
    """The Host header names no host of this server, as after DNS rebinding."""

    http_status = HTTPStatus.MISDIRECTED_REQUEST
    recovery = "Use a host name of this server; its operator sets them in CONTINUITY_ALLOWED_HOSTS."


class OriginNotAllowed(Forbidden):
    """A web page of another origin calls."""

    recovery = (
        "Call from a program, or from a page whose origin the operator names in"
        " CONTINUITY_TRUSTED_ORIGINS."
    )


def authenticate(request: HttpRequest) -> Principal:
    """Return whose token came with the request; counts the call like one over REST.

    Raises:
        ForeignHost, ForeignOrigin: The headers of that name.
        TooManyRequests: Over the rate.
        NotAuthenticated: No token, or not a valid one.
    """
    try:
        host = request.get_host()
    except DisallowedHost:
        raise HostNotAllowed("The Host header names no host of this server.") from None
    origin = request.headers.get("Origin")
    if origin is not None and not _is_ours(origin, host):
        raise OriginNotAllowed(f"Pages of the origin {origin[:200]!r} may not call this server.")
    throttle_request(request)
    principal = authenticate_request(request)
    if principal is None:
        raise NotAuthenticated("This call needs a bearer token.")
    return principal


def _is_ours(origin: str, host: str) -> bool:
    """Tell whether a page of this origin may call: it is this server's, or the operator's word."""
    try:
        parts = urlsplit(origin.lower())
    except ValueError:
        return False
    if not parts.netloc or parts.path or parts.query or parts.fragment:
        return False
    if parts.scheme in ("http", "https") and parts.netloc == host.lower():
        return True
    trusted = [urlsplit(name.lower()) for name in settings.CSRF_TRUSTED_ORIGINS]
    return any(
        parts.scheme == name.scheme and is_same_domain(parts.netloc, name.netloc.lstrip("*"))
        for name in trusted
    )


class HttpTransport:
    """Admits whoever the request's token names."""

    async def authenticate(self, context: MessageContext, *, needs_stack: bool) -> Principal:
        """Return the principal. Whether a worker lives is not asked: a run that nobody takes yet
        stays queued, as over REST.

        Raises:
            NotAuthenticated: The message came with no principal.
        """
        if context.principal is None:
            raise NotAuthenticated("This call needs a bearer token.")
        return context.principal
