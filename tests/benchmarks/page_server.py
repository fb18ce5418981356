"""A server of script-heavy pages of about 45 KB, like those of the floors: a style sheet, a script,
rows that the script creates."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_WORDS = "continuity stores what agents submit and returns what was done with it "
_PARAGRAPHS = "".join(
    f"<p id=p{n} class=c{n % 7}>Paragraph {n}: {_WORDS * 4}<a href=/page/{n}>link {n}</a></p>"
    for n in range(120)
)
_ROWS = (
    "<script>for (let i = 0; i < 200; i++) { const row = document.createElement('div');"
    " row.textContent = 'row ' + i + ' of ' + location.pathname;"
    " document.body.append(row) }</script>"
)
_PAGE = (
    "<!doctype html><html><head><title>Page {n}</title><link rel=stylesheet href=/s.css></head>"
    "<body><h1>Page {n}</h1>{paragraphs}<script src=/a.js></script>{rows}</body></html>"
)
_FILES = {
    "/s.css": (
        "text/css",
        b"body { font: 14px sans-serif; margin: 2em }" + b".c1{color:#333}" * 200,
    ),
    "/a.js": ("text/javascript", b"let t = 0; for (let i = 0; i < 200000; i++) t += i % 7\n"),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = (
        1 << 20
    )  # one write per response, so that no delayed acknowledgement comes in between
    delay_s = 0.0

    def do_GET(self) -> None:
        """Send a page, the style sheet or the script."""
        mime_type, body = _FILES.get(self.path, ("text/html", b""))
        if self.path.startswith("/page/"):
            time.sleep(self.delay_s)
            number = self.path.rpartition("/")[2]
            body = _PAGE.format(n=number, paragraphs=_PARAGRAPHS, rows=_ROWS).encode()
        self.send_response(200)
        self.send_header("content-type", mime_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@contextlib.contextmanager
def serve_script_pages(count: int, *, delay_s: float = 0.0) -> Iterator[list[str]]:
    """Serve `count` pages for the length of the block, each after `delay_s`, and yield their
    URLs."""
    handler = type("Handler", (_Handler,), {"delay_s": delay_s})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield [f"http://127.0.0.1:{server.server_port}/page/{n}" for n in range(count)]
    finally:
        server.shutdown()
        server.server_close()
