"""One call of the API: admitted, answered, refused in one shape. Every route under /api/v1 is an
`ApiView`.
"""

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

from decisions.api.arguments import RequestArguments, read_json
from decisions.api.drf import AlwaysJSON, JSONRenderer, record_refusal
from decisions.audit.record import is_access_refusal
from decisions.errors import Refused, as_dict
from decisions.identity.principals import Principal
from decisions.infra.threads import in_thread
from decisions.infra.trace_context import use_traceparent
from decisions.validation.json_input import BODY_LIMIT

Handler = Callable[..., Any]


class IdConverter:
    """An id in a path; an empty one reaches the call and is refused as an id, not as a route."""

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
    """Return a value as an answer that nobody stores and no browser takes for a page."""
    body = JSONRenderer().render(data)
    sure = {
        "Cache-Control": "no-store",
        "Content-Length": str(len(body)),
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(
        body, status=status, content_type="application/json", headers={**sure, **(headers or {})}
    )


def principal_of(request: Request) -> Principal:
    """Return who calls, once a view's scopes were checked."""
    return cast(Principal, request.auth)


class ApiView(APIView):
    """A call of the API.

    A handler that is a plain function runs on a database thread, right after the call was admitted
    there. One that is a coroutine function runs on the event loop: while it waits it holds neither
    thread nor connection.

    Attributes:
        scopes: the scope that each method needs.
        audited_path: what of the path the audit row of a missing scope tells, and under which name.
        audits_refusals: a refusal for want of a right, or for what is not there where something was
            to be changed, leaves an audit row; else its service tells of it.
        body_limit: bytes of a body.
        refusal_as_dict: the body of an answer that refuses, in the words of the call's own seed.
    """

    scopes: ClassVar[Mapping[str, str]] = {}
    audited_path: ClassVar[Mapping[str, str]] = {}
    audits_refusals: ClassVar[bool] = True
    body_limit: ClassVar[int] = BODY_LIMIT
    refusal_as_dict: ClassVar[Callable[[Refused], dict[str, Any]]] = staticmethod(as_dict)
    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    content_negotiation_class = AlwaysJSON
    view_is_async = True  # Django asks; `dispatch` is a coroutine function

    async def dispatch(  # type: ignore[override]
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Admit the call, have it answered, and answer whatever goes wrong in the one shape of
        errors.
        """
        self.args, self.kwargs = args, kwargs
        self.request = self.initialize_request(request, *args, **kwargs)
        method = str(request.method).lower()
        handler: Handler = self.http_method_not_allowed
        if method in self.http_method_names:
            handler = getattr(self, method, handler)
        try:
            with use_traceparent(request.headers.get("traceparent")):
                if iscoroutinefunction(handler):
                    await self.admit()
                    return cast(HttpResponseBase, await handler(self.request, **kwargs))
                return await in_thread(self._admit_and_answer, handler)
        except Exception as error:  # noqa: BLE001  (as DRF's own dispatch: the handler logs what it does not know)
            if isinstance(error, Refused) and self._is_told(error):
                principal = principal_of(self.request)
                await in_thread(record_refusal, self.request, principal, error, self.audited_path)
            return self.handle_exception(error)

    def _is_told(self, refusal: Refused) -> bool:
        """Tell whether the audit log has to be told of a refusal of a known caller."""
        if refusal.is_recorded or not self.audits_refusals:
            return False
        # By the scope: what reads a body in order to answer it is a read too.
        reads = self.scopes.get(str(self.request.method), ":read").endswith(":read")
        return is_access_refusal(refusal, reads=reads) and isinstance(self.request.auth, Principal)

    async def admit(self) -> None:
        """Refuse the call here if it may not be made."""
        await in_thread(self.initial, self.request, **self.kwargs)

    def _admit_and_answer(self, handler: Handler) -> HttpResponseBase:
        self.initial(self.request, **self.kwargs)
        return cast(HttpResponseBase, handler(self.request, **self.kwargs))

    def perform_authentication(self, request: Request) -> None:
        """Count the call, then authenticate: over the rate, nothing is asked of the database."""
        request.get_host()  # refuses a host that is not ours
        super().check_throttles(request)
        super().perform_authentication(request)

    def check_throttles(self, request: Request) -> None:
        """Nothing: the call was counted before it was authenticated."""

    def arguments(self, wanted: RequestArguments) -> dict[str, Any]:
        """Return the call's arguments from its path and its query, or its body where the method has
        one.

        Raises:
            InvalidInput: Any of its kinds.
        """
        query = self.request.query_params
        if self.request.method in ("GET", "HEAD"):
            return wanted.of_query(query, self.kwargs)
        body = read_json(self.request._request, limit=self.body_limit)
        return wanted.of_body(body, query, self.kwargs)

    async def arguments_of_body(self, wanted: RequestArguments) -> dict[str, Any]:
        """Return the same from the event loop, which a large body would hold up."""
        return await asyncio.to_thread(self.arguments, wanted)


class PublicView(ApiView):
    """A call that needs no token. Its handlers are coroutine functions; nothing before them waits
    for the database.
    """

    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()

    async def admit(self) -> None:
        """Refuse a foreign host, on the event loop itself."""
        self.initial(self.request, **self.kwargs)
