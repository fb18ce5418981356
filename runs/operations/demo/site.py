"""Serve the handbook on a free loopback port, with a redirect, a slow page and a missing page."""

from __future__ import annotations

import contextlib
import re
import socket
import sys
import threading
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

PAGES = Path(__file__).parent / "pages"

READING_ORDER = (
    "/",
    "/start",
    "/life-of-a-run.html",
    "/interfaces.html",
    "/events.html",
    "/artifacts.html",
    "/policy.html",
    "/audit.html",
    "/leases.html",
    "/error-codes.html",
    "/operations.html",
    "/glossary.html",
    "/create-token.html",
    "/about.zh.html",
    "/handbook.html",
    "/no-such-page.html",
)
CHAPTERS = (
    "quick-start",
    "life-of-a-run",
    "frames/rest-calls",
    "artifacts",
    "policy",
    "audit",
    "leases",
    "error-codes",
    "operations",
    "glossary",
)
REDIRECTS = {"/start": "/quick-start.html"}
PAUSES_S = {"/operations.html": 1.5}
KEEP_ALIVE_S = 15.0
MIME_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}


def render_page(file: Path) -> str:
    """Return a page with what pages share (head, navigation) and the chapters inserted."""
    page = file.read_text("utf-8").replace("  <!-- head -->\n", _shared("head"))
    address = "/" if file.name == "index.html" else f"/{file.name}"
    links = _shared("navigation").replace(
        f'<a href="{address}">', f'<a href="{address}" aria-current="page">'
    )
    page = page.replace("<!-- navigation -->\n", links)
    if "<!-- chapters -->" in page:
        page = page.replace("<!-- chapters -->", "\n".join(_chapter(name) for name in CHAPTERS))
    return page


def _shared(name: str) -> str:
    return (PAGES.parent / f"{name}.html").read_text("utf-8")


def _chapter(name: str) -> str:
    """Return a page's main element as a section, with headings one level lower."""
    page = (PAGES / f"{name}.html").read_text("utf-8")
    main = page.partition("<main>")[2].partition("</main>")[0]
    lowered = re.sub(r"(</?h)([1-5])\b", lambda tag: f"{tag[1]}{int(tag[2]) + 1}", main)
    return f'<section class="chapter">{lowered}</section>'


class DemoSite:
    """The handbook as a web site on 127.0.0.1, served by threads of this process until `close`.

    Use it as a context manager. Closing ends every connection at once; closing twice is safe.
    """

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="demo-site", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """Return the site's root without a trailing slash, such as http://127.0.0.1:40123."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def urls(self) -> list[str]:
        """Return the pages that the demo reads, in order; the last one does not exist."""
        return [self.address + path for path in READING_ORDER]

    def close(self) -> None:
        """Stop the server and release the port."""
        self._server.stop()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    """A threading server that can be stopped while clients keep connections open."""

    daemon_threads = True

    def __init__(self, *args: Any) -> None:
        self.stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._open_lock = threading.Lock()
        super().__init__(*args)

    @cached_property
    def files(self) -> dict[str, Path]:
        """Return the file of every valid path; other paths never reach the file system."""
        files = (path for path in PAGES.rglob("*") if path.suffix in MIME_TYPES)
        found = {f"/{path.relative_to(PAGES).as_posix()}": path for path in files}
        return found | {"/": PAGES / "index.html"}

    def get_request(self) -> tuple[socket.socket, Any]:
        request, address = super().get_request()
        with self._open_lock:
            self._open.add(request)
        return request, address

    def shutdown_request(self, request: Any) -> None:
        with self._open_lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing when a client disconnects during a response."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def stop(self) -> None:
        """Close the listening socket and all open connections; calling twice is safe."""
        if self.stopping.is_set():
            return
        self.stopping.set()
        self.shutdown()
        self.server_close()
        with self._open_lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """Answer GET and HEAD with a page, a redirect or the 404 page."""

    protocol_version = "HTTP/1.1"
    server_version = "handbook"
    sys_version = ""
    timeout = KEEP_ALIVE_S
    wbufsize: ClassVar[int] = 64 * 1024  # one write per response: two cost 40 ms (Nagle)
    server: _Server

    def do_GET(self) -> None:
        """Respond with the page."""
        path = urlsplit(self.path).path
        self.server.stopping.wait(PAUSES_S.get(path, 0.0))
        if path in REDIRECTS:
            self._respond(HTTPStatus.FOUND, b"", "text/plain", location=REDIRECTS[path])
        elif path in self.server.files:
            self._respond(HTTPStatus.OK, *_content(self.server.files[path]))
        else:
            self._respond(HTTPStatus.NOT_FOUND, *_content(PAGES / "404.html"))

    def do_HEAD(self) -> None:
        """Respond as for GET, without the body."""
        self.do_GET()

    def parse_request(self) -> bool:
        """Refuse every method but GET and HEAD."""
        if not super().parse_request():
            return False
        if self.command in {"GET", "HEAD"}:
            return True
        self.close_connection = True  # an unread body may follow
        self._respond(HTTPStatus.METHOD_NOT_ALLOWED, b"", "text/plain", allow="GET, HEAD")
        return False

    def _respond(self, status: HTTPStatus, body: bytes, mime_type: str, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", mime_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", "default-src 'self'")
        for name, value in headers.items():
            self.send_header(name.title(), value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class's name)
        """Log nothing: the demo prints to the terminal."""


def _content(file: Path) -> tuple[bytes, str]:
    """Return a file's content and MIME type, without caching, so that edits show at once."""
    body = render_page(file).encode() if file.suffix == ".html" else file.read_bytes()
    return body, MIME_TYPES[file.suffix]
