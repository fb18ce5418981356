"""The one ASGI application: by path to the API, MCP, the WebSockets, the static files, or
the rest of Django.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.exception import convert_exception_to_response

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)

from django.apps import apps  # noqa: E402  (Django has to be set up first)
from django.db import connections  # noqa: E402
from starlette.exceptions import HTTPException  # noqa: E402
from starlette.responses import PlainTextResponse, Response  # noqa: E402
from starlette.staticfiles import StaticFiles  # noqa: E402

from artifacts.api.uploads import UPLOAD_PATH  # noqa: E402
from artifacts.storage.staging import read_ticket  # noqa: E402
from config.api_errors import answer  # noqa: E402
from decisions.errors import BodyTooLarge, InvalidInput, Refused  # noqa: E402
from decisions.validation.json_input import CALL_LIMIT  # noqa: E402
from mcp_server.http.lazy_loading import PATHS, LazyMcpApplication  # noqa: E402
from runners.targets.runner_endpoint import close_connections  # noqa: E402
from runs.installation.health.publisher import Publisher  # noqa: E402
from runs.installation.home.paths import home_paths  # noqa: E402
from runs.installation.supervision.idle import WebActivity  # noqa: E402
from runs.websockets.conversation import PATH, serve_task  # noqa: E402
from runs.websockets.live import is_live_path, serve_live  # noqa: E402

if TYPE_CHECKING:
    from django.http import HttpRequest

HEAD_MAX_BYTES = 64 * 1024
STATIC = "/static"
_HEALTH = ("/healthz", "/readyz", "/metrics")
_API = ("/api/v1/", "/api/schema", *_HEALTH)


class HeadTooLarge(InvalidInput):
    """More bytes of headers than any call needs."""

    http_status = 431
    recovery = "Send fewer or shorter headers, and a shorter address."


class ApiHandler(ASGIHandler):
    """Django for calls that wait: no thread is kept for the length of a request, and no middleware
    runs.

    Django's own handler gives every request a thread of its own that lives as long as the request;
    a thousand listeners would be a thousand threads. What the middleware does for pages, `ApiView`
    does for calls.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        """Lead straight to the views."""
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        self._middleware_chain = convert_exception_to_response(
            self._get_response_async  # type: ignore[attr-defined]
        )

    async def get_response_async(self, request: HttpRequest) -> Any:
        """Answer; a refusal is an answer and no incident, so nothing is logged here."""
        response: Any = await self._middleware_chain(request)  # type: ignore[misc]
        response._resource_closers.append(request.close)
        return response

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        await self.handle(scope, receive, send)


class PageHandler(ASGIHandler):
    """Django for pages: each request has a thread, whose database connection ends with it."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        async with ThreadSensitiveContext():
            try:
                await self.handle(scope, receive, send)
            finally:
                await sync_to_async(connections.close_all)()


class StaticFileApp(StaticFiles):
    """The static files of every application; browsers keep them for a day, then ask by ETag."""

    def __init__(self) -> None:
        holding = [app for app in apps.get_app_configs() if (Path(app.path) / "static").is_dir()]
        super().__init__(packages=[(app.name, "static") for app in holding])

    async def get_response(self, path: str, scope: MutableMapping[str, Any]) -> Response:
        """Return the file, or say that there is none."""
        try:
            response = await super().get_response(path, scope)
        except HTTPException as refusal:
            return PlainTextResponse(refusal.detail, status_code=refusal.status_code)
        response.headers["Cache-Control"] = "public, max-age=86400"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


class _Body:
    """A request's body on its way to the application, cut off where it grows past its limit."""

    def __init__(self, scope: Any, receive: Any) -> None:
        self._receive = receive
        self.limit = self._left = _limit(scope)
        declared = dict(scope["headers"]).get(b"content-length", b"")
        self.is_flood = declared.isdigit() and int(declared) > self.limit

    async def receive(self) -> Any:
        """Return the next message; a flood ends as if the caller had hung up."""
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        self.is_flood = self._left < 0
        return {"type": "http.disconnect"} if self.is_flood else message


class Dispatcher:
    """What uvicorn calls."""

    def __init__(self) -> None:
        self._api, self._pages, self._files = ApiHandler(), PageHandler(), StaticFileApp()
        self._mcp = LazyMcpApplication()
        self._use = WebActivity(home_paths())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection's scope."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        else:
            await self._live(receive, send)

    async def _http(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on, unless its head or its body is a flood."""
        if _head_bytes(scope) > HEAD_MAX_BYTES:
            told = f"The head of the request is larger than {HEAD_MAX_BYTES} bytes."
            await _refuse(send, HeadTooLarge(told))
            return
        if not scope["path"].startswith(_HEALTH):
            self._use.record()
        body = _Body(scope, receive)
        if not body.is_flood:
            await self._choose(scope["path"])(scope, body.receive, send)
        if body.is_flood:
            await _refuse(send, BodyTooLarge(f"The body has more than {body.limit} bytes."))

    async def _socket(self, scope: Any, receive: Any, send: Any) -> None:
        """Open a task's WebSocket, or that of its live page; there are no others."""
        if _head_bytes(scope) > HEAD_MAX_BYTES or not scope["path"].startswith(PATH):
            await send({"type": "websocket.close"})  # before the handshake: the client sees 403
            return

        async def heard() -> Any:
            message = await receive()
            self._use.record()
            return message

        serve = serve_live if is_live_path(scope["path"]) else serve_task
        await serve(scope, heard, send)

    def _choose(self, path: str) -> Any:
        if path.startswith(_API):
            return self._api
        if path in PATHS:
            return self._mcp
        return self._static if path.startswith(STATIC + "/") else self._pages

    async def _static(self, scope: Any, receive: Any, send: Any) -> None:
        place = {**scope, "root_path": scope.get("root_path", "") + STATIC}
        await self._files(place, receive, send)

    async def _live(self, receive: Any, send: Any) -> None:
        """Follow the process's life."""
        publisher = Publisher()  # of the calls that are made here
        publisher.start()
        while True:
            message = await receive()
            is_over = message["type"] == "lifespan.shutdown"
            if is_over:
                await self._mcp.close()
                await close_connections()
                publisher.stop()
            await send({"type": f"{message['type']}.complete"})
            if is_over:
                return


def _limit(scope: Any) -> int:
    """Return how large a body may be: an upload's is as large as its ticket says."""
    path = scope["path"]
    ticket = read_ticket(path.removeprefix(UPLOAD_PATH)) if path.startswith(UPLOAD_PATH) else None
    return CALL_LIMIT if ticket is None else max(CALL_LIMIT, ticket.size_bytes)


def _head_bytes(scope: Any) -> int:
    fields = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
    return fields + len(scope.get("raw_path") or b"") + len(scope["query_string"])


async def _refuse(send: Any, refusal: Refused) -> None:
    response = answer(refusal, {"Connection": "close"})
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})


application = Dispatcher()
