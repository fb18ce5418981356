"""HTTP/1.1 with a bound on the head of a request: 64 KiB of request line and headers, then 431.

uvicorn's httptools protocol keeps whatever arrives, however long; its h11 protocol bounds the head
but answers 400. So httptools' is taken and bounded here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from decisions.errors import InvalidInput

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

HEAD_MAX_BYTES = 64 * 1024
_STATUS = 431
_LINGER_S = 1.0


class BoundedHeadProtocol(HttpToolsProtocol):
    """A connection whose requests have heads of at most 64 KiB; it ends with one that has more."""

    _head_bytes = 0
    _in_head = True
    _refused = False

    def data_received(self, data: bytes) -> None:
        """Take what arrived; refuse a head that grows past the bound before it is whole."""
        if self._refused:
            return
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_MAX_BYTES and not self.transport.is_closing():
            self._refused = True
            body = refusal()
            self.transport.write(
                b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
                b"content-type: application/json\r\n"
                b"connection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
            )
            # Closing at once would reset the connection under a client that still sends.
            self.transport.write_eof()
            self.loop.call_later(_LINGER_S, self.transport.close)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Its head is whole: hand it to the application, or to the refusal when it is too large."""
        self._in_head = False
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > HEAD_MAX_BYTES:
            self.app = refuse_head
        super().on_headers_complete()


def refusal() -> bytes:
    """Return the answer's body, in the shape of every error."""
    problem = InvalidInput("The head of the request is larger than 64 KiB.").as_dict()
    problem["recovery"] = "Send fewer or shorter headers, and a shorter address."
    return json.dumps(problem).encode()


async def refuse_head(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """Answer 431 and close the connection."""
    body = refusal()
    await send(
        {
            "type": "http.response.start",
            "status": _STATUS,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
            ],
            "trailers": False,
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})
