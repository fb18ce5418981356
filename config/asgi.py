"""The ASGI application: it dispatches by path to the API, MCP, the WebSockets, the static files or
the other pages of Django.
"""

from __future__ import annotations

import asyncio
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
from django.conf import settings  # noqa: E402
from django.db import connections  # noqa: E402
from django.urls import get_resolver  # noqa: E402
from starlette.datastructures import Headers, QueryParams  # noqa: E402
from starlette.exceptions import HTTPException  # noqa: E402
from starlette.responses import PlainTextResponse, Response  # noqa: E402
from starlette.staticfiles import StaticFiles  # noqa: E402

from artifacts.storage.staging import UPLOAD_PATH, read_ticket  # noqa: E402
from config.api_errors import error_response  # noqa: E402
from config.http.compression import CompressedFiles, compress  # noqa: E402
from config.http.cors import allow_origins  # noqa: E402
from config.http.static_files import cache_control  # noqa: E402
from decisions.foundation.database.lock_timeout import limit_lock_waits  # noqa: E402
from decisions.foundation.errors import BodyTooLarge, InvalidInput, Refused  # noqa: E402
from decisions.foundation.validation.json_input import CALL_LIMIT  # noqa: E402
from mcp_server.http.lazy_loading import PATHS, LazyMcpApplication  # noqa: E402
from runners.targets.runner_endpoint import close_connections  # noqa: E402
from runs.operations.health.publisher import Publisher  # noqa: E402
from runs.operations.home.paths import home_paths  # noqa: E402
from runs.operations.supervision.idle import WebActivity  # noqa: E402
from runs.websockets.conversation import PATH, serve_task  # noqa: E402
from runs.websockets.extension import PATH as PLUGIN_PATH  # noqa: E402
from runs.websockets.extension import serve_extension  # noqa: E402
from runs.websockets.live import is_live_path, serve_live  # noqa: E402

if TYPE_CHECKING:
    from django.http import HttpRequest

HEAD_MAX_BYTES = 64 * 1024
STATIC = "/static"
REST = "/api/v1/"
LAST_PUBLISH_S = 1.0
_HEALTH = ("/healthz", "/readyz", "/metrics")
_API = (REST, "/api/schema", *_HEALTH)


class RequestHeadTooLarge(InvalidInput):
    """The request line and the headers are larger than HEAD_MAX_BYTES."""

    http_status = 431
    recovery = "Send fewer or shorter headers, and a shorter URL."


class ApiHandler(ASGIHandler):
    """Django's handler for the API, without middleware and without a thread per request.

    Django's own handler keeps a thread for each request, so a thousand waiting clients would need a
    thousand threads. `ApiView` does for API calls what the middleware does for pages.
    """

    def load_middleware(self, is_async: bool = False) -> None:
        """Call the views directly."""
        self._view_middleware: list[Any] = []
        self._template_response_middleware: list[Any] = []
        self._exception_middleware: list[Any] = []
        self._middleware_chain = convert_exception_to_response(
            self._get_response_async  # type: ignore[attr-defined]
        )

    async def get_response_async(self, request: HttpRequest) -> Any:
        """Return the response; error responses are not logged, unlike in Django's own handler."""
        response: Any = await self._middleware_chain(request)  # type: ignore[misc]
        response._resource_closers.append(request.close)
        return compress(request, response)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request."""
        await self.handle(scope, receive, send)


class PageHandler(ASGIHandler):
    """Django's handler for pages: each request has a thread and closes its database connections."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request."""
        async with ThreadSensitiveContext():
            try:
                await self.handle(scope, receive, send)
            finally:
                await sync_to_async(connections.close_all)()


class StaticFileApp(StaticFiles):
    """The static files of all applications; browsers keep one as long as its address says."""

    def __init__(self) -> None:
        with_files = [app for app in apps.get_app_configs() if (Path(app.path) / "static").is_dir()]
        super().__init__(packages=[(app.name, "static") for app in with_files])
        self._compressed = CompressedFiles()

    async def get_response(self, path: str, scope: MutableMapping[str, Any]) -> Response:
        """Return the file, or 404."""
        try:
            response = await super().get_response(path, scope)
        except HTTPException as error:
            return PlainTextResponse(error.detail, status_code=error.status_code)
        response.headers["X-Content-Type-Options"] = "nosniff"
        return await self._compressed.compressed(response, Headers(scope=scope))

    def file_response(
        self, full_path: Any, stat_result: Any, scope: Any, status_code: int = 200
    ) -> Response:
        """Return the file, or that it has not changed, with how long browsers may keep it."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        version = QueryParams(scope["query_string"]).get("v", "")
        response.headers["Cache-Control"] = cache_control(Path(full_path), version)
        return response


class _Body:
    """A request's body, which is cut off if it exceeds its limit."""

    def __init__(self, scope: Any, receive: Any) -> None:
        self._receive = receive
        self.limit = self._left = _limit(scope)
        declared = dict(scope["headers"]).get(b"content-length", b"")
        self.is_too_large = declared.isdigit() and int(declared) > self.limit

    async def receive(self) -> Any:
        """Return the next ASGI event; a body over the limit ends with a disconnect."""
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        self.is_too_large = self._left < 0
        return {"type": "http.disconnect"} if self.is_too_large else message


class Dispatcher:
    """The ASGI callable that uvicorn runs."""

    def __init__(self) -> None:
        self._api, self._pages, self._files = ApiHandler(), PageHandler(), StaticFileApp()
        self._mcp = LazyMcpApplication()
        self._from_origins = allow_origins(self._http, settings.CORS_ORIGINS)
        self._activity = WebActivity(home_paths())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one HTTP request, one WebSocket or the lifespan."""
        if scope["type"] == "http":
            is_rest = scope["path"].startswith(REST)
            await (self._from_origins if is_rest else self._http)(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        else:
            await self._lifespan(receive, send)

    async def _http(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request; refuse it if its head or its body is too large."""
        if _head_bytes(scope) > HEAD_MAX_BYTES:
            message = f"The request line and headers are larger than {HEAD_MAX_BYTES} bytes."
            await _refuse(send, RequestHeadTooLarge(message))
            return
        if not scope["path"].startswith(_HEALTH):
            self._activity.record()
        body = _Body(scope, receive)
        if not body.is_too_large:
            await self._choose(scope["path"])(scope, body.receive, send)
        if body.is_too_large:
            await _refuse(send, BodyTooLarge(f"The body is larger than {body.limit} bytes."))

    async def _socket(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the WebSocket of a browser, of a task or of its live page; close any other."""
        path = scope["path"]
        is_known = path == PLUGIN_PATH or path.startswith(PATH)
        if _head_bytes(scope) > HEAD_MAX_BYTES or not is_known:
            await send({"type": "websocket.close"})  # before the handshake: the client gets 403
            return

        async def receive_and_record() -> Any:
            message = await receive()
            self._activity.record()
            return message

        if path == PLUGIN_PATH:
            await serve_extension(scope, receive, send)  # its pings alone keep no stack running
            return
        serve = serve_live if is_live_path(path) else serve_task
        await serve(scope, receive_and_record, send)

    def _choose(self, path: str) -> Any:
        if path.startswith(_API):
            return self._api
        if path in PATHS:
            return self._mcp
        return self._static if path.startswith(STATIC + "/") else self._pages

    async def _static(self, scope: Any, receive: Any, send: Any) -> None:
        mounted = {**scope, "root_path": scope.get("root_path", "") + STATIC}
        await self._files(mounted, receive, send)

    async def _lifespan(self, receive: Any, send: Any) -> None:
        """Publish this process's metrics from startup to shutdown, then close what is open."""
        publisher = Publisher()
        publisher.start()
        while True:
            message = await receive()
            is_shutdown = message["type"] == "lifespan.shutdown"
            if is_shutdown:
                await self._mcp.close()
                await close_connections()
                await asyncio.to_thread(publisher.stop, LAST_PUBLISH_S)
            await send({"type": f"{message['type']}.complete"})
            if is_shutdown:
                return


def _limit(scope: Any) -> int:
    """Return the largest allowed body in bytes; an upload may be as large as its ticket says."""
    path = scope["path"]
    ticket = read_ticket(path.removeprefix(UPLOAD_PATH)) if path.startswith(UPLOAD_PATH) else None
    return CALL_LIMIT if ticket is None else max(CALL_LIMIT, ticket.size_bytes)


def _head_bytes(scope: Any) -> int:
    fields = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
    return fields + len(scope.get("raw_path") or b"") + len(scope["query_string"])


async def _refuse(send: Any, refusal: Refused) -> None:
    response = error_response(refusal, {"Connection": "close"})
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})


limit_lock_waits()
_ = get_resolver().url_patterns  # now, not when the first request waits for the pages
application = Dispatcher()
