"""A local web site of one task: routes, its state, and a log of the requests that it received."""

from __future__ import annotations

import html
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.parser import BytesParser
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

STYLE = "body{font:16px sans-serif;margin:24px;max-width:900px} label{display:block;margin:6px 0}"


@dataclass(frozen=True)
class SiteRequest:
    """One request: `form` has the fields of a posted form, or the object of a posted JSON text."""

    method: str
    path: str
    query: dict[str, str]
    form: dict[str, Any]
    lists: dict[str, list[str]]
    cookies: dict[str, str]
    files: dict[str, bytes]


@dataclass(frozen=True)
class SiteResponse:
    """One response; `cut` closes the connection after half of the body."""

    body: bytes | str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    media_type: str = "text/html; charset=utf-8"
    cut: bool = False


View = Callable[[SiteRequest], "SiteResponse | str"]


def page(title: str, body: str, *, script: str = "", style: str = "") -> str:
    """Return an HTML document."""
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title>"
        f"<style>{STYLE}{style}</style></head><body>{body}"
        + (f"<script>{script}</script>" if script else "")
        + "</body></html>"
    )


def redirect(to: str, **headers: str) -> SiteResponse:
    """Return a redirect that a browser follows with GET."""
    return SiteResponse(status=303, headers={"Location": to, **headers})


def as_json(value: Any) -> SiteResponse:
    """Return a JSON response."""
    return SiteResponse(json.dumps(value), media_type="application/json")


def escape(text: Any) -> str:
    """Return the text for use in HTML."""
    return html.escape(str(text), quote=True)


class Site:
    """The views of a site, its state and its log.

    Attributes:
        state: what the site stored; checkers read it.
        log: `METHOD path?query` of each request, in order.
        url: the address without a path, once the site is served.
    """

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.log: list[str] = []
        self.url = ""
        self.views: dict[str, View] = {}

    def view(self, path: str) -> Callable[[View], View]:
        """Register a view for a path; a path that ends with `/*` matches all paths below it."""

        def register(view: View) -> View:
            self.views[path] = view
            return view

        return register

    def add(self, path: str, body: str) -> None:
        """Register a page that never changes."""
        self.views[path] = lambda request: body

    def posted(self, name: str = "/save", then: str = "") -> View:
        """Register a view that stores posted forms under `posts` and answers with a page."""
        self.state.setdefault("posts", [])

        @self.view(name)
        def save(request: SiteRequest) -> str:
            self.state["posts"].append(dict(request.form))
            return page("Saved", then or "<h1>Saved</h1><p>Thank you.</p>")

        return save

    def respond(self, request: SiteRequest) -> SiteResponse:
        """Return the response to a request."""
        view = self.views.get(request.path)
        if view is None:
            parents = [name for name in self.views if name.endswith("/*")]
            view = next((self.views[n] for n in parents if request.path.startswith(n[:-1])), None)
        if view is None:
            return SiteResponse(page("Not found", "<h1>404 Not found</h1>"), status=404)
        answer = view(request)
        return answer if isinstance(answer, SiteResponse) else SiteResponse(answer)


@contextmanager
def serving(site: Site, host: str = "127.0.0.1") -> Iterator[Site]:
    """Serve a site on a free port for the length of the block."""
    handler = type("SiteHandler", (_Handler,), {"site": site})
    server = ThreadingHTTPServer((host, 0), handler)
    server.daemon_threads = True
    site.url = f"http://{host}:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    site: Site

    def do_GET(self) -> None:
        """Answer a request."""
        length = int(self.headers.get("content-length") or 0)
        request = self._parse(self.rfile.read(length))
        if request.path == "/favicon.ico":
            self._send(SiteResponse(status=204))
            return
        self.site.log.append(f"{self.command} {self.path}")
        with suppress(ConnectionError):
            self._send(self.site.respond(request))

    do_POST = do_GET  # noqa: N815 - the name that http.server requires

    def _parse(self, body: bytes) -> SiteRequest:
        parts = urlsplit(self.path)
        media_type = self.headers.get("content-type", "")
        form: dict[str, Any] = {}
        lists: dict[str, list[str]] = {}
        files: dict[str, bytes] = {}
        if media_type.startswith("application/json"):
            form = json.loads(body or b"{}")
        elif media_type.startswith("multipart/form-data"):
            form, files = _multipart(media_type, body)
        else:
            for name, value in parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True):
                form[name] = value
                lists.setdefault(name, []).append(value)
        jar = SimpleCookie(self.headers.get("cookie", ""))
        cookies = {name: morsel.value for name, morsel in jar.items()}
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        return SiteRequest(self.command, parts.path, query, form, lists, cookies, files)

    def _send(self, response: SiteResponse) -> None:
        body = response.body.encode() if isinstance(response.body, str) else response.body
        self.send_response(response.status)
        self.send_header("Content-Type", response.media_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in response.headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if response.cut else body)
        if response.cut:
            self.close_connection = True

    def log_message(self, *args: object) -> None:
        """Log nothing."""


def _multipart(media_type: str, body: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    message = BytesParser().parsebytes(b"Content-Type: " + media_type.encode() + b"\r\n\r\n" + body)
    form: dict[str, Any] = {}
    files: dict[str, bytes] = {}
    for part in message.get_payload():
        name = str(part.get_param("name", header="content-disposition"))  # type: ignore[union-attr]
        content = part.get_payload(decode=True)  # type: ignore[union-attr]
        if part.get_filename() is not None:  # type: ignore[union-attr]
            form[name] = part.get_filename()  # type: ignore[union-attr]
            files[name] = content  # type: ignore[assignment]
        else:
            form[name] = content.decode()  # type: ignore[union-attr]
    return form, files
