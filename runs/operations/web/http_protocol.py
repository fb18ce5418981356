"""HTTP/1.1 with limits that uvicorn lacks: the size of a request's head, the time for its head and
its body, the time that a response may stay unread, and the number of connections.

uvicorn's httptools protocol does not limit the size of a head, and its h11 protocol answers 400.
"""

from __future__ import annotations

import asyncio
import enum
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from decisions.foundation.errors import InvalidInput, NotReady, Refused, TooManyRequests
from runs.operations.web.connection_limits import WebConfig, address_of

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveCallable, ASGISendCallable, Scope

HEAD_MAX_BYTES = 64 * 1024
_LINGER_S = 1.0


class HeadTooLarge(InvalidInput):
    """The request line and the headers, or the trailers, are larger than HEAD_MAX_BYTES."""

    http_status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    recovery = "Send fewer or shorter headers, and a shorter address."


class RequestTooSlow(InvalidInput):
    """The head or the body did not arrive in time."""

    http_status = HTTPStatus.REQUEST_TIMEOUT
    retryable = True
    recovery = "Send the whole request without pauses."


class TooManyConnections(TooManyRequests):
    """The client's address has too many open connections."""

    recovery = "Close connections that you do not need, or use them for several requests."


class ServerFull(NotReady):
    """The server has too many open connections."""

    recovery = "Try again in a few seconds."


class _Phase(enum.Enum):
    IDLE = "no request is arriving"
    HEAD = "a head is arriving"
    BODY = "a body is arriving"


class ObservedFlowControl(FlowControl):
    """A flow control that calls a function when the server goes on reading after a pause."""

    def __init__(self, transport: asyncio.Transport, on_resume: Callable[[], None]) -> None:
        super().__init__(transport)
        self._on_resume = on_resume

    def resume_reading(self) -> None:
        """Go on reading."""
        if self.read_paused:
            self._on_resume()
        super().resume_reading()


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed after a request that exceeds a limit (ConnectionLimits)."""

    config: WebConfig

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and wait for its first request; refuse it if there are too many."""
        super().connection_made(transport)
        self.flow = ObservedFlowControl(transport, self._restart_time_limit)
        self._limits = self.config.open_connections.limits
        self._phase, self._phase_began = _Phase.IDLE, 0.0
        self._head_bytes = self._body_bytes = self._trailer_bytes = 0
        self._has_begun = False
        self._arrival_timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        reason = self.config.open_connections.add(address_of(transport))
        self._is_counted, self._is_refused = reason is None, reason is not None
        if reason == "peer":
            message = f"More than {self._limits.per_peer} connections are open from this address."
            self._refuse(TooManyConnections(message))
        elif reason is not None:
            self._refuse(ServerFull("This server has too many open connections."))
        else:
            self._enter(_Phase.HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers and count the connection as closed."""
        self._stop_timers()
        if self._is_counted:
            self.config.open_connections.remove(address_of(self.transport))
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received data; refuse a head, or trailers, that exceed the limit before they are
        complete.
        """
        if self._is_refused:
            return
        if self._phase is _Phase.IDLE:
            self._enter(_Phase.HEAD)
        if self._phase is _Phase.HEAD:
            self._head_bytes += len(data)
        else:
            self._trailer_bytes += len(data)
        super().data_received(data)
        size = {_Phase.HEAD: self._head_bytes, _Phase.BODY: self._trailer_bytes}.get(self._phase, 0)
        if size > HEAD_MAX_BYTES and not self.transport.is_closing():
            self._refuse(_head_too_large(), linger_s=_LINGER_S)

    def on_message_begin(self) -> None:
        """Start to count a request's head."""
        if self._phase is not _Phase.HEAD:
            self._enter(_Phase.HEAD)
        self._head_bytes, self._has_begun = 0, True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; leave out the trailers of a body in chunks, which nothing reads."""
        if self._phase is not _Phase.BODY:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Pass the request to the application, or to `refuse_head` if its head is too large."""
        self._enter(_Phase.BODY)
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > HEAD_MAX_BYTES:
            self.app = refuse_head
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count the bytes, which extend the time for the rest; trailers follow the last of them."""
        self._body_bytes += len(body)
        self._trailer_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop the time limit: the request is complete."""
        self._enter(_Phase.IDLE)
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """Pass the connection to the WebSocket's protocol, which has its own limits."""
        self._stop_timers()
        super().handle_websocket_upgrade()

    # --- time limits ------------------------------------------------------------------------------

    def _enter(self, phase: _Phase) -> None:
        self._phase, self._phase_began = phase, self.loop.time()
        self._head_bytes = self._body_bytes = self._trailer_bytes = 0
        self._has_begun = phase is _Phase.BODY
        if self._arrival_timer is not None:
            self._arrival_timer.cancel()
            self._arrival_timer = None
        if phase is not _Phase.IDLE:
            self._arrival_timer = self.loop.call_later(self._allowed_s(), self._check_arrival)

    def _allowed_s(self) -> float:
        if self._phase is _Phase.HEAD:
            return self._limits.head_s
        return self._limits.body_s + self._body_bytes / self._limits.body_bytes_per_s

    def _check_arrival(self) -> None:
        """Refuse the request if its time is over; time in which the server does not read does not
        count.
        """
        if self._is_refused or self.transport.is_closing():
            return
        if self.flow.read_paused:
            self._restart_time_limit()
        left_s = self._phase_began + self._allowed_s() - self.loop.time()
        if left_s > 0:
            self._arrival_timer = self.loop.call_later(left_s, self._check_arrival)
        elif not self._has_begun:
            self.transport.close()  # no request was begun, so a browser must not show an error
        else:
            part = "head" if self._phase is _Phase.HEAD else "body"
            slow = RequestTooSlow(f"The {part} of the request did not arrive in time.")
            self._refuse(slow, linger_s=_LINGER_S)

    def _restart_time_limit(self) -> None:
        """Give the rest of the request the time of a whole one: the server did not read."""
        self._phase_began, self._body_bytes = self.loop.time(), 0

    def pause_writing(self) -> None:
        """Start the time limit for a client that does not read."""
        super().pause_writing()
        if self._unread_timer is None:
            self._unread_timer = self.loop.call_later(self._limits.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop it: the client reads."""
        super().resume_writing()
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    def _stop_timers(self) -> None:
        for timer in (self._arrival_timer, self._unread_timer):
            if timer is not None:
                timer.cancel()
        self._arrival_timer = self._unread_timer = None

    # --- refusals ---------------------------------------------------------------------------------

    def _refuse(self, error: Refused, *, linger_s: float = 0.0) -> None:
        """Respond with an error, unless another response is due or started, and close.

        Args:
            linger_s: close only then: closing at once would reset the connection while the client
                still sends, and it could lose the response.
        """
        self._is_refused = True
        cycle = self.cycle
        is_free = cycle is None or cycle.response_complete
        is_own = self._phase is _Phase.BODY and not self.pipeline
        if is_free or (is_own and not cycle.response_started):
            status, body = HTTPStatus(error.http_status), _body(error)
            self.transport.write(
                b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\nconnection: close\r\n"
                b"content-length: %d\r\n\r\n%b" % (status, status.phrase.encode(), len(body), body)
            )
        if not is_free:
            cycle.disconnected = True  # the application writes nothing more
            cycle.message_event.set()
        close: Callable[[], object] = self.transport.close
        if linger_s:
            self.transport.write_eof()
            self.loop.call_later(linger_s, close)
        else:
            close()


def _head_too_large() -> HeadTooLarge:
    return HeadTooLarge("The headers or trailers of the request are larger than 64 KiB.")


def _body(error: Refused) -> bytes:
    """Return the body of an error response, in the format of all errors."""
    return json.dumps(error.as_dict()).encode()


async def refuse_head(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """Answer 431 and close the connection."""
    body = _body(_head_too_large())
    await send(
        {
            "type": "http.response.start",
            "status": HeadTooLarge.http_status,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
            ],
            "trailers": False,
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})
