"""The classes that settings.REST_FRAMEWORK names: throttle, authentication, permission, renderer,
content negotiation, parser.

Apart from `decisions.rest_base.view`, because DRF imports these classes while it defines APIView.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson
from django.conf import settings
from django.http import Http404, HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from decisions.audit.anonymous_events import record_anonymous
from decisions.audit.record import AuditEvent, record
from decisions.foundation.errors import Forbidden, NotAuthenticated, Refused, TooManyRequests
from decisions.foundation.security.logs import redact
from decisions.foundation.security.loopback import is_loopback
from decisions.foundation.validation.storable import storable_text
from decisions.identity.principals import Principal, authenticate, throttle_key
from decisions.rest_base.arguments import read_json
from decisions.rest_base.throttle import CallCounter

if TYPE_CHECKING:
    from rest_framework.views import APIView

_calls = CallCounter()


def bearer_token(request: HttpRequest | Request) -> str | None:
    """Return the bearer token of a request, or None."""
    scheme, _, secret = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else None


def is_local_call(request: HttpRequest | Request) -> bool:
    """Return whether the call came from this machine and through no proxy."""
    forwarded = any(
        name == "HTTP_FORWARDED" or name.startswith("HTTP_X_FORWARDED") for name in request.META
    )
    peer, host = request.META.get("REMOTE_ADDR", ""), request.get_host()
    return not forwarded and is_loopback(peer) and is_loopback(_host_name(host))


def _host_name(host: str) -> str:
    return host.rpartition("]")[0] if host.startswith("[") else host.partition(":")[0]


def throttle_request(request: HttpRequest | Request) -> None:
    """Count a call of its bearer token, valid or not: THROTTLE_PER_SECOND calls are allowed.

    Raises:
        TooManyRequests: This call exceeds the rate.
    """
    secret, limit = bearer_token(request), settings.THROTTLE_PER_SECOND
    if secret and _calls.exceeds(throttle_key(secret), limit=limit):
        raise TooManyRequests(f"More than {limit} calls in one second with this token.")


def throttle_principal(principal: Principal) -> None:
    """Count a frame of an authenticated WebSocket, at the same rate as calls.

    Raises:
        TooManyRequests: This frame exceeds the rate.
    """
    limit = settings.THROTTLE_PER_SECOND
    if _calls.exceeds(throttle_key(principal.id), limit=limit):
        raise TooManyRequests(f"More than {limit} frames in one second.")


def authenticate_request(request: HttpRequest | Request) -> Principal | None:
    """Return the principal of the request's token, or None for a request without a token.

    A call that is not local has the trust level `remote`, whatever the token grants.

    Raises:
        NotAuthenticated: The token is not valid; audited.
    """
    secret = bearer_token(request)
    if secret is None:
        return None
    try:
        principal = authenticate(secret)
    except NotAuthenticated:
        record_unknown_credential(request)
        raise
    return principal if is_local_call(request) else principal.with_trust("remote")


def record_unknown_credential(request: HttpRequest | Request) -> None:
    """Audit a call with an invalid token or ticket: peer address, path, and how many such calls the
    row stands for. Nothing of the credential is recorded.
    """
    path = storable_text(redact(request.path[:128]))
    details = {"errorCode": NotAuthenticated.code}
    event = AuditEvent("access.refused", "unknown", "route", path, "", "", details)
    record_anonymous(event, peer=request.META.get("REMOTE_ADDR", ""))


class TokenAuthentication(BaseAuthentication):
    """Bearer token authentication; the trust level `local` holds only for local calls."""

    def authenticate(self, request: Request) -> tuple[None, Principal] | None:
        """Return the token's principal, or None for a request without a token.

        Raises:
            NotAuthenticated: The token is not valid.
        """
        principal = authenticate_request(request)
        return None if principal is None else (None, principal)

    def authenticate_header(self, request: Request) -> str:
        """Return the WWW-Authenticate challenge of a 401 response."""
        return 'Bearer realm="continuity"'


class HasScope(BasePermission):
    """Require the scope that the view's `scopes` names for the method; no entry, no access."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Return True or raise; a missing scope is audited.

        Raises:
            NotAuthenticated: The request has no token.
            Forbidden: The token lacks the scope.
        """
        principal = request.auth
        if not isinstance(principal, Principal):
            raise NotAuthenticated("This call needs a bearer token.")
        if request.method not in view.allowed_methods:
            return True  # nothing will be done: the response is 405
        method = "GET" if request.method == "HEAD" else str(request.method)
        scopes: Mapping[str, str] = getattr(view, "scopes", {})
        try:
            principal.require(scopes.get(method, "none that exists"))
        except Forbidden as refusal:
            named: Mapping[str, str] = getattr(view, "audited_path", {})
            record_refusal(request, principal, refusal, named)
            raise
        return True


def record_refusal(
    request: Request, principal: Principal, refusal: Refused, named: Mapping[str, str]
) -> None:
    """Audit a refused REST call: principal, method, route, and the scope or else the error code.
    Commits.

    Args:
        named: metadata name -> path argument: the only parts of the request that are recorded.
    """
    refusal.is_recorded = True
    scope = refusal.details.get("scope")
    reason = {"scope": scope} if scope else {"errorCode": refusal.code}
    match = request.resolver_match
    route, path = (match.route, match.kwargs) if match else ("", {})
    details = {name: storable_text(redact(str(path[part])[:64])) for part, name in named.items()}
    record(
        AuditEvent(
            "access.refused",
            principal.id,
            "route",
            route,
            principal.tenant_id,
            principal.workspace_id,
            {"method": request.method, **details, **reason},
        )
    )


class TokenThrottle(BaseThrottle):
    """THROTTLE_PER_SECOND calls per bearer token, valid or not."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Count the call and return True.

        Raises:
            TooManyRequests: This call exceeds the rate.
        """
        throttle_request(request)
        return True


class JSONRenderer(BaseRenderer):
    """Render JSON with orjson."""

    media_type = "application/json"
    format = "json"
    charset = None
    render_style = "binary"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Return the value as JSON bytes."""
        try:
            return orjson.dumps(data)
        except TypeError:  # an integer of more than 64 bits, which a tool may return
            return json.dumps(data, ensure_ascii=False).encode()


class AlwaysJSON(DefaultContentNegotiation):
    """Always respond with JSON: the Accept header is ignored, and `?format=` does not exist."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Return the only renderer.

        Raises:
            Http404: The query has `format`.
        """
        if "format" in request.query_params:
            raise Http404
        return renderers[0], renderers[0].media_type


class GatedJSONParser(BaseParser):
    """Parse a JSON body of at most the view's `body_limit` bytes with `read_json`."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """Return the value.

        Raises:
            UnsupportedBody, BodyTooLarge, MalformedBody: As `read_json`.
        """
        return read_json(stream, limit=parser_context["view"].body_limit)
