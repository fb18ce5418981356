"""A local web server with pages that are difficult to read, for tests that drive a real browser.

`PageServer` listens on a free port of 127.0.0.1. A test adds its own pages with `add`. The
difficult pages are in `PAGES` (markup by path) and `UNUSUAL_RESPONSES` (responses that are more
than markup).
"""

from __future__ import annotations

import http.server
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from tests.support.browser.page_markup import PAGES


@dataclass(frozen=True)
class PageResponse:
    """A response, sent after `delay` seconds, with a pause of `hang` seconds in the middle."""

    body: bytes = b""
    status: int = 200
    mime: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    hang: float = 0.0


def html(markup: str, **options: Any) -> PageResponse:
    """Return a response with this markup, in UTF-8."""
    return PageResponse(markup.encode(), **options)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 20  # one write per response avoids TCP's delayed acknowledgement of 40 ms
    server: PageServer

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        self.server.hits[path] += 1
        found = self.server.pages.get(path)
        answer = found(query) if callable(found) else found
        self._send(answer or html("<title>Not found</title><h1>Not found</h1>", status=404))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self.server.forms.append((self.path, dict(parse_qsl(body, keep_blank_values=True))))
        self.do_GET()

    def _send(self, answer: PageResponse) -> None:
        time.sleep(answer.delay)
        if answer.status == 0:
            self.close_connection = True
            return
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.mime)
        for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        half = len(answer.body) // 2 if answer.hang else 0
        try:
            self.wfile.write(answer.body[:half])
            if answer.hang:
                self.wfile.flush()
                self.server.closing.wait(answer.hang)
            self.wfile.write(answer.body[half:])
        except OSError:
            self.close_connection = True

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


Page = PageResponse | Callable[[str], PageResponse]


class PageServer(http.server.ThreadingHTTPServer):
    """The server; `hits` counts requests by path, `forms` lists posted forms with their paths."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__((host, 0), _Handler)
        self.hits: Counter[str] = Counter()
        self.forms: list[tuple[str, dict[str, str]]] = []
        self.closing = threading.Event()
        self.pages: dict[str, Page] = {path: html(text) for path, text in PAGES.items()}
        self.pages.update(UNUSUAL_RESPONSES)

    def url(self, path: str) -> str:
        """Return the URL of a path."""
        return f"http://{self.server_address[0]!s}:{self.server_port}{path}"

    def add(self, path: str, page: Page | str) -> str:
        """Serve markup, an Answer, or a function of the query string; return the page's URL."""
        self.pages[path] = html(page) if isinstance(page, str) else page
        return self.url(path)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


@contextmanager
def serve_pages(host: str = "127.0.0.1") -> Iterator[PageServer]:
    """Run a server in its own thread for the length of the block."""
    server = PageServer(host)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


def _redirect(to: str, status: int = 302) -> PageResponse:
    return PageResponse(status=status, headers={"Location": to})


_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360f8cf00000000ffff0300000600"
    "0557bfabd40000000049454e44ae426082"
)
_NOTHING = "default-src 'none'; sandbox"
_ATTACHED = {"Content-Disposition": "attachment; filename=report.zip"}

UNUSUAL_RESPONSES: dict[str, Page] = {
    "/missing": html("<title>Gone</title><h1>Gone</h1><p>There is nothing here.", status=404),
    "/broken": html("<title>Oops</title><h1>Server error</h1>", status=500),
    "/empty-404": PageResponse(status=404),
    "/no-content": PageResponse(status=204),
    "/hang-up": PageResponse(status=0),
    "/redirect": _redirect("/plain"),
    "/redirect-loop": _redirect("/redirect-loop"),
    "/slow": html("<title>Slow</title><p>Late, but here.", delay=1.0),
    "/never": html("<title>Never</title>", delay=3600.0),
    "/half": html("<title>Half</title><p>first</p>" + "<!-- -->" * 400 + "<p>last", hang=3600.0),
    "/text": PageResponse("第一行\nsecond line\n".encode(), mime="text/plain; charset=utf-8"),
    "/data.json": PageResponse(b'{"name": "x", "items": [1, 2]}', mime="application/json"),
    "/feed.xml": PageResponse(
        b"<?xml version='1.0'?><rss><item>News</item></rss>", mime="text/xml"
    ),
    "/pixel.png": PageResponse(_PIXEL, mime="image/png"),
    "/paper.pdf": PageResponse(b"%PDF-1.4\n%%EOF\n", mime="application/pdf"),
    "/report.zip": PageResponse(b"PK" + b"\0" * 5000, mime="application/zip", headers=_ATTACHED),
    "/attached.html": html("<p>keep me", headers=_ATTACHED),
    "/unknown.bin": PageResponse(bytes(range(256)) * 20, mime="application/octet-stream"),
    "/strict-csp": html(
        "<title>Strict</title><h1>Strict</h1><p>A page that forbids everything it can.",
        headers={"Content-Security-Policy": f"{_NOTHING}; require-trusted-types-for 'script'"},
    ),
    "/api/slow.json": PageResponse(
        b'{"text": "fetched at last"}', mime="application/json", delay=0.3
    ),
    "/api/never": PageResponse(b"{}", mime="application/json", delay=3600.0),
    "/slow.png": PageResponse(_PIXEL, mime="image/png", delay=3600.0),
}
