"""Serve the handbook on a free loopback port, with a redirect, a slow page and a missing page."""

from __future__ import annotations

import re
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
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
READ_TIMEOUT_S = 15.0
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
    """The handbook as a web site on 127.0.0.1, served by threads of this process while the context
    manager is open.
    """

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="demo-site", daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.closing.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        """The site's root without a trailing slash, such as http://127.0.0.1:40123."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def urls(self) -> list[str]:
        """The pages that the demo reads, in order; the last one does not exist."""
        return [self.address + path for path in READING_ORDER]


class _Server(ThreadingHTTPServer):
    """Holds the pages by path; other paths never reach the file system.

    Attributes:
        closing: set when the site closes: slow pages then wait no longer.
    """

    def __init__(self, *args: Any) -> None:
        self.closing = threading.Event()
        files = (path for path in PAGES.rglob("*") if path.suffix in MIME_TYPES)
        self.files = {f"/{path.relative_to(PAGES).as_posix()}": path for path in files}
        self.files["/"] = PAGES / "index.html"
        super().__init__(*args)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing when a client disconnects during a response."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answer GET with a page, a redirect or the 404 page, and close the connection."""

    timeout = READ_TIMEOUT_S
    server: _Server

    def do_GET(self) -> None:
        """Respond with the page."""
        path = urlsplit(self.path).path
        self.server.closing.wait(PAUSES_S.get(path, 0.0))
        if path in REDIRECTS:
            self._respond(HTTPStatus.FOUND, b"", ".html", location=REDIRECTS[path])
            return
        file = self.server.files.get(path)
        status = HTTPStatus.NOT_FOUND if file is None else HTTPStatus.OK
        file = file or PAGES / "404.html"
        is_page = file.suffix == ".html"
        self._respond(
            status, render_page(file).encode() if is_page else file.read_bytes(), file.suffix
        )

    def _respond(self, status: HTTPStatus, body: bytes, suffix: str, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", MIME_TYPES[suffix])
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", "default-src 'self'")
        for name, value in headers.items():
            self.send_header(name.title(), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class's name)
        """Log nothing: the demo prints to the terminal."""
