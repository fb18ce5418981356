"""Map exceptions to the error responses of the REST API.

All errors have one shape, {errorCode, message, details, retryable, recovery, nextActions?}, except
for calls whose seed defines its own (`ApiView.refusal_as_dict`).
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
from decisions.infra.lock_timeout import is_lock_timeout

ADMIN = "/admin"  # answers with HTML pages; everything else with JSON
log = logging.getLogger(__name__)


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


class InternalError(Refused):
    """An unexpected error; the log has its traceback under the error id."""

    http_status = 500
    recovery = "Give the operator the error id, under which the server's log has the cause."


class StorageUnavailable(NotReady):
    """The database or the artifact storage is unavailable."""

    recovery = "Try again in a few seconds; /readyz shows which part is unavailable."


class StorageBusy(StorageUnavailable):
    """Another transaction held a lock of the database for too long."""

    recovery = "Try again in a few seconds. If it fails again, give the operator the error id."


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
    return _unexpected(error)


def _unexpected(error: BaseException | None) -> InternalError | StorageUnavailable:
    error_id = new_id("err_")
    log.error("a call failed unexpectedly", exc_info=error, extra={"errorId": error_id})
    if isinstance(error, OSError):
        details = {"errorId": error_id, "causeCode": "STORAGE"}
        return StorageUnavailable("The artifact storage is unavailable.", details=details)
    if isinstance(error, OperationalError | InterfaceError):
        details = {"errorId": error_id, "causeCode": "STORAGE_UNAVAILABLE"}
        if is_lock_timeout(error):
            return StorageBusy("A lock in the database was not released in time.", details=details)
        return StorageUnavailable("The database is unavailable.", details=details)
    return InternalError("The call failed: internal error.", details={"errorId": error_id})


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
    """Return a 500 response for an error outside the API views (Django's handler500)."""
    if request.path.startswith(ADMIN):
        return defaults.server_error(request)
    return error_response(_unexpected(sys.exc_info()[1]))
