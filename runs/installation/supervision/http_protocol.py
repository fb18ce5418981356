"""HTTP/1.1 with a limit on a request's head: request line and headers above 64 KiB get status 431.

uvicorn's httptools protocol has no limit, and its h11 protocol answers 400. So this module limits
the httptools protocol.
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
    """A connection that is closed after a request with a head of more than 64 KiB."""

    _head_bytes = 0
    _in_head = True
    _refused = False

    def data_received(self, data: bytes) -> None:
        """Parse received data; refuse a head that exceeds the limit before it is complete."""
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
            # Closing at once would reset the connection while the client still sends.
            self.transport.write_eof()
            self.loop.call_later(_LINGER_S, self.transport.close)

    def on_message_begin(self) -> None:
        """Reset the count at the start of a request."""
        self._in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Pass the request to the application, or to `refuse_head` if its head is too large."""
        self._in_head = False
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > HEAD_MAX_BYTES:
            self.app = refuse_head
        super().on_headers_complete()


def refusal() -> bytes:
    """Return the body of the 431 response, in the format of all errors."""
    error = InvalidInput("The head of the request is larger than 64 KiB.").as_dict()
    error["recovery"] = "Send fewer or shorter headers, and a shorter address."
    return json.dumps(error).encode()


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
