"""The base class of every route under /api/v1: admission, dispatch, error responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from typing import Any, ClassVar, cast

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import register_converter
from rest_framework.request import Request
from rest_framework.views import APIView

from decisions.audit.record import is_access_refusal
from decisions.foundation.errors import InvalidInput, Refused, as_dict
from decisions.foundation.infra.threads import in_thread
from decisions.foundation.infra.trace_context import use_traceparent
from decisions.foundation.validation.json_input import BODY_LIMIT
from decisions.identity.principals import Principal
from decisions.rest_base.arguments import RequestArguments, read_json
from decisions.rest_base.drf import AlwaysJSON, JSONRenderer, record_refusal

Handler = Callable[..., Any]


class IdConverter:
    """An id in a path; an empty one reaches the view, which refuses it as an invalid id."""

    regex = "[^/]*"

    def to_python(self, value: str) -> str:
        """Return the text as it is."""
        return value

    def to_url(self, value: str) -> str:
        """Return the text as it is."""
        return value


register_converter(IdConverter, "id")


def json_response(
    data: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """Return a value as a JSON response that is not cached and not sniffed as HTML."""
    body = JSONRenderer().render(data)
    defaults = {
        "Cache-Control": "no-store",
        "Content-Length": str(len(body)),
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(
        body,
        status=status,
        content_type="application/json",
        headers={**defaults, **(headers or {})},
    )


def principal_of(request: Request) -> Principal:
    """Return the caller of a request whose scopes were checked."""
    return cast(Principal, request.auth)


def _refuse_slash_at_end(path: str, arguments: Mapping[str, Any]) -> None:
    name = next((name for name, text in arguments.items() if text == ""), "")
    if name.endswith("Id") and path.endswith("/"):
        raise InvalidInput(
            f"{name} is empty, because the path ends with a slash; the list is {path.rstrip('/')}."
        )


class ApiView(APIView):
    """A REST call.

    A handler that is a plain function runs on a database thread, right after admission on the same
    thread. A coroutine function runs on the event loop: while it waits, it occupies neither a
    thread nor a connection.

    Attributes:
        scopes: method -> the scope that it needs.
        audited_path: path argument -> its name in the audit row of a refused call.
        audits_refusals: whether the view audits refused access: missing rights, and for writes
            also resources that were not found. False where the service audits it.
        body_limit: the maximum size of a body in bytes.
        refusal_as_dict: returns the error body of a refusal.
    """

    scopes: ClassVar[Mapping[str, str]] = {}
    audited_path: ClassVar[Mapping[str, str]] = {}
    audits_refusals: ClassVar[bool] = True
    body_limit: ClassVar[int] = BODY_LIMIT
    refusal_as_dict: ClassVar[Callable[[Refused], dict[str, Any]]] = staticmethod(as_dict)
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    content_negotiation_class = AlwaysJSON
    view_is_async = True  # Django reads this; `dispatch` is a coroutine function

    async def dispatch(  # type: ignore[override]
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Admit the call, run its handler, and turn any exception into an error response."""
        self.args, self.kwargs = args, kwargs
        self.request = self.initialize_request(request, *args, **kwargs)
        method = str(request.method).lower()
        handler: Handler = self.http_method_not_allowed
        if method in self.http_method_names:
            handler = getattr(self, method, handler)
        try:
            _refuse_slash_at_end(request.path, kwargs)
            with use_traceparent(request.headers.get("traceparent")):
                if iscoroutinefunction(handler):
                    await self.admit()
                    return cast(HttpResponseBase, await handler(self.request, **kwargs))
                return await in_thread(self._admit_and_answer, handler)
        except Exception as error:  # noqa: BLE001  (as DRF's own dispatch: the exception handler logs unknown ones)
            if isinstance(error, Refused) and self._should_audit(error):
                principal = principal_of(self.request)
                await in_thread(record_refusal, self.request, principal, error, self.audited_path)
            return self.handle_exception(error)

    def _should_audit(self, refusal: Refused) -> bool:
        """Return whether this refusal of an authenticated caller needs an audit row."""
        if refusal.is_recorded or not self.audits_refusals:
            return False
        # By the scope, not the method: some POST calls only read.
        reads = self.scopes.get(str(self.request.method), ":read").endswith(":read")
        return is_access_refusal(refusal, reads=reads) and isinstance(self.request.auth, Principal)

    async def admit(self) -> None:
        """Check throttle, authentication and scope; raises the refusal."""
        await in_thread(self.initial, self.request, **self.kwargs)

    def _admit_and_answer(self, handler: Handler) -> HttpResponseBase:
        self.initial(self.request, **self.kwargs)
        return cast(HttpResponseBase, handler(self.request, **self.kwargs))

    def perform_authentication(self, request: Request) -> None:
        """Count the call, then authenticate: a call over the rate causes no database query."""
        request.get_host()  # refuses a host that is not in ALLOWED_HOSTS
        super().check_throttles(request)
        super().perform_authentication(request)

    def check_throttles(self, request: Request) -> None:
        """Do nothing: `perform_authentication` counted the call already."""

    def arguments(self, wanted: RequestArguments) -> dict[str, Any]:
        """Return the call's validated arguments: path and query, and the body for methods with one.

        Raises:
            InvalidInput: Or one of its subclasses.
        """
        query = self.request.query_params
        if self.request.method in ("GET", "HEAD"):
            return wanted.of_query(query, self.kwargs)
        body = read_json(self.request._request, limit=self.body_limit)
        return wanted.of_body(body, query, self.kwargs)

    async def arguments_of_body(self, wanted: RequestArguments) -> dict[str, Any]:
        """Return `arguments` without blocking the event loop on a large body."""
        return await asyncio.to_thread(self.arguments, wanted)


class PublicView(ApiView):
    """A call that needs no token.

    Its handlers are coroutine functions, and admission does not use the database.
    """

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()

    async def admit(self) -> None:
        """Refuse an unknown Host header, on the event loop itself."""
        self.initial(self.request, **self.kwargs)
