"""Errors as answers of the REST door: one shape {errorCode, message, details, retryable, recovery,
nextActions?} for all of them, but for calls whose seed has a shape of its own
(`ApiView.refusal_as_dict`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

from django.core.exceptions import DisallowedHost, PermissionDenied, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views import defaults
from rest_framework.exceptions import APIException, MethodNotAllowed

from decisions.api.drf import bearer_token
from decisions.api.view import ApiView, json_response
from decisions.errors import (
    InvalidInput,
    NotAuthenticated,
    NotReady,
    Refused,
    TooManyRequests,
    as_dict,
)
from decisions.infra.ids import new_id

ADMIN = "/admin"  # its pages are for people; everything else answers programs
log = logging.getLogger(__name__)


class RouteNotFound(Refused):
    """No such route."""

    code = "NOT_FOUND"
    http_status = 404
    recovery = "See /api/docs for the routes that exist."


class WrongMethod(Refused):
    """The route exists, but not for this method."""

    code = "METHOD_NOT_ALLOWED"
    http_status = 405
    recovery = "Use one of the methods that the header Allow names."


class MalformedRequest(InvalidInput):
    """Django or DRF takes no request of this form: too many fields, say."""


class InvalidHost(MalformedRequest):
    """The Host header names another server."""

    recovery = "Use a host name of this server; its operator sets them in CONTINUITY_ALLOWED_HOSTS."


class InternalError(Refused):
    """Our own failure; the log has all of it under the error id."""

    http_status = 500
    recovery = "Tell the operator the error id; the server's log has the cause under it."


class StorageUnavailable(NotReady):
    """The database, or the storage of artifacts, did not take the call."""

    recovery = "Try again in a few seconds; /readyz says which part is away."


def handle(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """Return the answer to a call that raised (REST_FRAMEWORK's EXCEPTION_HANDLER)."""
    refusal = error if isinstance(error, Refused) else _translate(error)
    view, request = context.get("view"), context.get("request")
    headers = _headers(
        refusal, token_came=request is not None and bearer_token(request) is not None
    )
    if isinstance(refusal, WrongMethod) and view is not None:
        headers["Allow"] = ", ".join(view.allowed_methods)
    is_ours = isinstance(view, ApiView)
    tell = getattr(view, "refusal_as_dict") if is_ours else as_dict  # noqa: B009  (a view may have its own)
    return answer(refusal, headers, tell=tell)


def answer(
    refusal: Refused,
    headers: Mapping[str, str] | None = None,
    *,
    tell: Callable[[Refused], dict[str, Any]] = as_dict,
) -> HttpResponse:
    """Return a refusal in the one shape of errors, or in that of the call's own seed."""
    return json_response(tell(refusal), status=refusal.http_status, headers=headers)


def _headers(refusal: Refused, *, token_came: bool) -> dict[str, str]:
    if isinstance(refusal, NotAuthenticated):
        problem = ', error="invalid_token"' if token_came else ""
        return {"WWW-Authenticate": f'Bearer realm="continuity"{problem}'}
    if isinstance(refusal, TooManyRequests | StorageUnavailable):
        return {"Retry-After": "1"}
    return {}


def _translate(error: Exception) -> Refused:
    """Return what an exception of Django, of DRF or of our own making amounts to for the caller."""
    if isinstance(error, Http404):
        return RouteNotFound("There is nothing at this address.")
    if isinstance(error, MethodNotAllowed):
        return WrongMethod(str(error.detail))
    if isinstance(error, DisallowedHost):
        return InvalidHost("The Host header names no host of this server.")
    if isinstance(error, SuspiciousOperation | APIException | PermissionDenied):
        return MalformedRequest("The request is not taken in this form.")
    return _malfunction(error)


def _malfunction(error: BaseException | None) -> InternalError | StorageUnavailable:
    error_id = new_id("err_")
    log.error("a call failed unexpectedly", exc_info=error, extra={"errorId": error_id})
    if isinstance(error, OSError):
        details = {"errorId": error_id, "causeCode": "STORAGE"}
        return StorageUnavailable(
            "The storage of artifacts did not take the call.", details=details
        )
    if isinstance(error, OperationalError | InterfaceError):
        details = {"errorId": error_id, "causeCode": "STORAGE_UNAVAILABLE"}
        return StorageUnavailable("The database did not take the call.", details=details)
    return InternalError("The server failed at this call.", details={"errorId": error_id})


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Answer 400 outside of a call (Django's handler400)."""
    if request.path.startswith(ADMIN):
        return defaults.bad_request(request, exception)
    return answer(_translate(exception))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """Answer 404 outside of a call (Django's handler404)."""
    if request.path.startswith(ADMIN):
        return defaults.page_not_found(request, exception)
    return answer(_translate(Http404()))


def server_error(request: HttpRequest) -> HttpResponseBase:
    """Answer 500 outside of a call (Django's handler500)."""
    if request.path.startswith(ADMIN):
        return defaults.server_error(request)
    return answer(_malfunction(sys.exc_info()[1]))
