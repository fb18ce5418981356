"""What a page requests since a form was submitted, and what its answers and texts say of a search.

A search happened if the query is in a request or in the page's address, or if what the page shows
changed and then held still. What changes by itself, such as clocks and counters, does not count
(page/changes.js).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote_plus, urlsplit

from runners.errors import SearchNotConfirmed

if TYPE_CHECKING:
    from playwright.async_api import Page, Request, Response, WebSocket

MAX_REQUESTS = 300
BODY_BYTES = 64 * 1024
_ENCODINGS = ("utf-8", "gb18030", "latin-1")  # of a query in an address
_NO_WORD = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"\d+")
# Kinds of requests that may send a form; images, styles and beacons do not.
_SENDING = frozenset({"document", "xhr", "fetch", "websocket"})


@dataclass(frozen=True, slots=True)
class FormBefore:
    """What a page showed just before its form was submitted."""

    documents: int
    shown: Mapping[str, Any]


@dataclass(slots=True)
class _Sent:
    texts: list[str]
    is_page: bool = False
    is_post: bool = False
    is_socket: bool = False
    is_open: bool = True
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page shows at one moment.

    Attributes:
        text: a hash of the whole text, without its numbers.
        touched: something that does not change by itself differs from what the watch began with.
        changed: and it has held still since, longer than a clock would.
        still_seconds: how long everything has held still that does not change by itself.
        untouched_seconds: how long the page was watched without any input.
        requested: the addresses that its scripts requested since it loaded, when a watch begins.
    """

    documents: int
    url: str
    text: str = ""
    loading: int = 0
    busy: bool = False
    touched: bool = False
    changed: bool = False
    still_seconds: float = 0.0
    untouched_seconds: float = 0.0
    requested: tuple[str, ...] = ()


@dataclass(eq=False)  # without slots: Playwright sets attributes on the owners of listeners
class SubmitWatch:
    """Watches one tab from just before a form is submitted.

    Attributes:
        known: the signatures of requests that the page sent before, by itself.
        sent: the requests since then, with the texts that may have a query.
        has_sent: one of them may have sent a form, and is not known.
        form: the form that was filled; None if none was.
    """

    before: Shown
    known: frozenset[str] = frozenset()
    sent: dict[object, _Sent] = field(default_factory=dict)
    signatures: set[str] = field(default_factory=set)
    has_sent: bool = False
    form: FormBefore | None = None

    def on_request(self, request: Request) -> None:
        """Record a request with the texts that may have the query."""
        body = (request.post_data_buffer or b"")[:BODY_BYTES].decode("utf-8", errors="replace")
        if request.resource_type in _SENDING:
            self._note_sending(signature(request.method, request.url, body))
        is_page = request.is_navigation_request() and request.frame.parent_frame is None
        texts = [*_values_of(request.url), *_values_in(body)]
        self._add(request, _Sent(texts, is_page, is_post=request.method == "POST"))

    def on_response(self, response: Response) -> None:
        """Record the status of a request's response."""
        if (sent := self.sent.get(response.request)) is not None:
            sent.status = response.status

    def on_end(self, request: Request) -> None:
        """Record that a request has ended."""
        if (sent := self.sent.get(request)) is not None:
            sent.is_open = False

    def on_socket(self, socket: WebSocket) -> None:
        """Record what the page sends over a WebSocket that it opens."""
        socket.on("framesent", self._on_frame)

    def _on_frame(self, payload: str | bytes) -> None:
        text = payload if isinstance(payload, str) else payload.decode(errors="replace")
        self._note_sending(signature("websocket", "", text[:BODY_BYTES]))
        self._add(object(), _Sent(_values_in(text[:BODY_BYTES]), is_socket=True, is_open=False))

    def _note_sending(self, signature: str) -> None:
        """Record a request that may send a form, unless the page sent the same one before."""
        if len(self.signatures) < MAX_REQUESTS:
            self.signatures.add(signature)
        if signature not in self.known:
            self.has_sent = True

    def _add(self, key: object, sent: _Sent) -> None:
        if len(self.sent) < MAX_REQUESTS:
            self.sent[key] = sent

    def start(self, page: Page) -> None:
        """Start watching."""
        for event, listener in self._listeners():
            page.on(event, listener)

    def stop(self, page: Page) -> None:
        """Stop watching."""
        for event, listener in self._listeners():
            page.remove_listener(event, listener)

    def _listeners(self) -> Iterator[tuple[Any, Any]]:
        yield "request", self.on_request
        yield "response", self.on_response
        yield "requestfinished", self.on_end
        yield "requestfailed", self.on_end
        yield "websocket", self.on_socket

    def with_query(self, query: str) -> list[_Sent]:
        """Return the requests that have the query."""
        return [sent for sent in self.sent.values() if any(_has(t, query) for t in sent.texts)]

    def evidence(self, query: str, now: Shown) -> str:
        """Return what shows that the search happened: request, address or page; "" if nothing."""
        if self.with_query(query):
            return "request"
        if now.url != self.before.url and any(_has(text, query) for text in _values_of(now.url)):
            return "address"
        return "page" if self.shows_other(now) else ""

    def shows_other(self, now: Shown) -> bool:
        """Return whether the page shows another text than before, and keeps it.

        Another document at the same address is the same page, loaded again, unless it was posted.
        """
        if now.documents == self.before.documents:
            return now.changed
        was_posted = any(sent.is_page and sent.is_post for sent in self.sent.values())
        is_other = was_posted or _page_of(now.url) != _page_of(self.before.url)
        return is_other and now.text not in ("", self.before.text)

    def may_show_other(self, now: Shown) -> bool:
        """Return whether the page shows another text, of which it is not known whether it stays."""
        return now.documents == self.before.documents and now.touched and not now.changed

    def has_reaction(self, now: Shown) -> bool:
        """Return whether the page requested or showed anything since."""
        return self.has_sent or now.documents != self.before.documents or self.shows_other(now)

    def is_busy(self, query: str, now: Shown) -> bool:
        """Return whether the page, or a request with the query, waits for an answer."""
        return now.busy or any(sent.is_open for sent in self.with_query(query))

    def check_answers(self, query: str) -> None:
        """Raise SearchNotConfirmed if the search was sent by a script, and every answer is an
        error.
        """
        sent = [one for one in self.with_query(query) if not one.is_page]
        failed = [one for one in sent if one.status is None or one.status >= 400]
        if not sent or len(failed) < len(self.with_query(query)) or sent[-1].is_socket:
            return
        status = failed[-1].status
        answer = f"HTTP status {status}" if status else "no answer"
        raise SearchNotConfirmed(
            f"The search was sent, but its request got {answer}.",
            details={"reason": "request_failed", "httpStatus": status},
        )

    def is_loading(self, now: Shown) -> bool:
        """Return whether the page says that something is still to come, and did not before."""
        return now.loading > (self.before.loading if now.documents == self.before.documents else 0)


def signature(method: str, url: str, body: str = "") -> str:
    """Return what is alike in requests that a page repeats: all but their numbers."""
    return _NUMBER.sub("#", f"{method} {url} {body}")


def _page_of(url: str) -> str:
    return url.partition("#")[0]


def _values_of(url: str) -> list[str]:
    """Return the texts in an address: path segments, parameters and fragment, decoded."""
    parts = urlsplit(url)
    found = []
    for encoding in _ENCODINGS:
        texts = [*parts.path.split("/"), parts.fragment]
        found += [unquote_plus(text, encoding, "replace") for text in texts if text]
        pairs = parse_qsl(parts.query, encoding=encoding, errors="replace")
        found += [value for _, value in pairs] or [unquote_plus(parts.query, encoding, "replace")]
    return list(dict.fromkeys(found))


def _values_in(body: str) -> list[str]:
    """Return the texts in the body of a request: those of its JSON, else its parameters."""
    if not body:
        return []
    try:
        return list(_strings(json.loads(body)))
    except (ValueError, RecursionError):
        return [body, *(value for _, value in parse_qsl(body))]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _has(text: str, query: str) -> bool:
    """Return whether a text has the words of a query, one after another."""
    wanted = _words(query)
    return wanted in _words(text) if wanted.strip() else query in text


def _words(text: str) -> str:
    return f" {_NO_WORD.sub(' ', text).strip().casefold()} "
