"""Map exceptions to the error responses of the REST API.

All errors have one shape, {errorCode, message, details, retryable, recovery, nextActions?}, except
for calls whose seed defines its own (`ApiView.refusal_as_dict`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from django.core.exceptions import DisallowedHost, PermissionDenied, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.views import defaults
from rest_framework.exceptions import APIException, MethodNotAllowed

from decisions.foundation.database.faults import is_temporary
from decisions.foundation.errors import (
    InvalidInput,
    NotAuthenticated,
    Refused,
    TooManyRequests,
    as_dict,
)
from decisions.foundation.unexpected_errors import StorageUnavailable, log_unexpected
from decisions.rest_base.drf import bearer_token
from decisions.rest_base.view import ApiView, json_response

ADMIN = "/admin"  # answers with HTML pages; everything else with JSON


class RouteNotFound(Refused):
    """No route has this path."""

    code = "NOT_FOUND"
    http_status = 404
    recovery = "See /api/docs for the available routes."


class UnsupportedMethod(Refused):
    """The route does not support this method."""

    code = "METHOD_NOT_ALLOWED"
    http_status = 405
    recovery = "Use one of the methods in the Allow header."


class MalformedRequest(InvalidInput):
    """Django or DRF refused the form of the request, for example because of too many fields."""


class InvalidHost(MalformedRequest):
    """The Host header is not a host name of this server."""

    recovery = "Use a host name that the operator lists in CONTINUITY_ALLOWED_HOSTS."


def handle(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """Return the response to a call that raised (REST_FRAMEWORK's EXCEPTION_HANDLER)."""
    refusal = error if isinstance(error, Refused) else _translate(error)
    view, request = context.get("view"), context.get("request")
    headers = _headers(refusal, has_token=request is not None and bearer_token(request) is not None)
    if isinstance(refusal, UnsupportedMethod) and view is not None:
        headers["Allow"] = ", ".join(view.allowed_methods)
    has_own = isinstance(view, ApiView)
    refusal_as_dict = getattr(view, "refusal_as_dict") if has_own else as_dict  # noqa: B009  (set per instance)
    return error_response(refusal, headers, refusal_as_dict=refusal_as_dict)


def error_response(
    refusal: Refused,
    headers: Mapping[str, str] | None = None,
    *,
    refusal_as_dict: Callable[[Refused], dict[str, Any]] = as_dict,
) -> HttpResponse:
    """Return the error response to a refusal."""
    return json_response(refusal_as_dict(refusal), status=refusal.http_status, headers=headers)


def _headers(refusal: Refused, *, has_token: bool) -> dict[str, str]:
    if isinstance(refusal, NotAuthenticated):
        error = ', error="invalid_token"' if has_token else ""
        return {"WWW-Authenticate": f'Bearer realm="continuity"{error}'}
    if isinstance(refusal, TooManyRequests | StorageUnavailable):
        return {"Retry-After": "1"}
    return {}


def _translate(error: Exception) -> Refused:
    """Return the refusal for an exception of Django or DRF, or for an unexpected one."""
    if isinstance(error, Http404):
        return RouteNotFound("No route has this path.")
    if isinstance(error, MethodNotAllowed):
        return UnsupportedMethod(str(error.detail))
    if isinstance(error, DisallowedHost):
        return InvalidHost("The Host header is not a host name of this server.")
    if isinstance(error, SuspiciousOperation | APIException | PermissionDenied):
        return MalformedRequest("The request does not have a form that this server accepts.")
    return log_unexpected(error)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Return a 400 response for an error outside the API views (Django's handler400)."""
    if request.path.startswith(ADMIN):
        return defaults.bad_request(request, exception)
    return error_response(_translate(exception))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Return a 404 response for an unknown path (Django's handler404)."""
    if request.path.startswith(ADMIN):
        return defaults.page_not_found(request, exception)
    return error_response(_translate(Http404()))


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Return a 500 response, or a 503 that may be repeated, for an error outside the API views
    (Django's handler500).
    """
    error = sys.exc_info()[1]
    if not request.path.startswith(ADMIN):
        refusal = log_unexpected(error)
        return error_response(refusal, _headers(refusal, has_token=False))
    if not is_temporary(error):
        return defaults.server_error(request)
    page = render_to_string("503.html")
    return HttpResponse(page, status=503, headers={"Retry-After": "1"})
