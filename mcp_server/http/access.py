"""Authentication of MCP requests over HTTP: the Host and Origin headers, the rate, the token."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus

from django.core.exceptions import DisallowedHost
from django.db import Error
from django.http import HttpRequest

from decisions.foundation.errors import Forbidden, NotAuthenticated
from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal, is_credential_active
from decisions.rest_base.drf import authenticate_request, throttle_request
from decisions.rest_base.origins import is_allowed_origin
from mcp_server.protocol.request_context import MessageContext

CHECK_S = 15.0  # interval at which the token of an open stream is checked again


class HostNotAllowed(Forbidden):
    """The Host header is not a host name of this server (protection against DNS rebinding)."""

    http_status = HTTPStatus.MISDIRECTED_REQUEST
    recovery = "Use a host name that the operator lists in CONTINUITY_ALLOWED_HOSTS."


def authenticate(request: HttpRequest) -> Principal:
    """Return the principal of the request's token; the call counts toward the same rate as REST.

    Raises:
        HostNotAllowed: The Host header is not allowed.
        Forbidden: The request comes from a web page of another origin.
        TooManyRequests: The caller exceeds its rate.
        NotAuthenticated: The token is missing or invalid.
    """
    try:
        host = request.get_host()
    except DisallowedHost:
        raise HostNotAllowed("The Host header is not a host name of this server.") from None
    origin = request.headers.get("Origin")
    if origin is not None and not is_allowed_origin(origin, host):
        raise Forbidden(
            f"Pages of the origin {origin[:200]!r} may not call this server.",
            recovery="Call from a program, or from a page whose origin the operator lists in"
            " CONTINUITY_TRUSTED_ORIGINS.",
        )
    throttle_request(request)
    principal = authenticate_request(request)
    if principal is None:
        raise NotAuthenticated("This call needs a bearer token.")
    return principal


async def wait_until_credential_ends(principal: Principal) -> None:
    """Return soon after the caller's token was revoked or has expired; it is checked every CHECK_S.

    A database that does not answer ends nothing: the token is checked again later.
    """
    while True:
        await asyncio.sleep(CHECK_S)
        with suppress(Error):
            if not await in_thread(is_credential_active, principal):
                return


class HttpTransport:
    """Returns the principal that `authenticate` found for the HTTP request."""

    async def authenticate(self, context: MessageContext, *, needs_stack: bool) -> Principal:
        """Return the message's principal. `needs_stack` is ignored: without a worker a run stays
        queued, as over REST.

        Raises:
            NotAuthenticated: The message has no principal.
        """
        if context.principal is None:
            raise NotAuthenticated("This call needs a bearer token.")
        return context.principal
