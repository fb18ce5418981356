"""What a page requested and showed since a form was submitted, and whether a search happened.

A search happened if the query is in a request or in the page's address, or if what the page shows
changed and then held still. Clocks and counters do not count (page/changes.js).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote_plus, urlsplit

from runners.browser.errors import ContextLost
from runners.browser.interaction.locator import run_command
from runners.browser.session.tab import Tab
from runners.errors import NavigationTimeout, SearchNotConfirmed, ToolFailed

if TYPE_CHECKING:
    from playwright.async_api import Request, Response, WebSocket

STILL_SECONDS = 0.5
NOTHING_SECONDS = 4.0  # after which a page that shows and requests nothing did not search
REACTION_SECONDS = 3.0
ANSWER_SECONDS = 5.0
POLL_SECONDS = 0.1
MAX_REQUESTS = 300
BODY_BYTES = 64 * 1024
_ENCODINGS = ("utf-8", "gb18030", "latin-1")  # of a query in an address
_NO_WORD = re.compile(r"[\W_]+")
# Kinds of requests that may send a form; images, styles and beacons do not.
_SENDING = frozenset({"document", "xhr", "fetch", "websocket"})


@dataclass(slots=True)
class _Sent:
    texts: list[str]
    is_page: bool = False
    is_socket: bool = False
    is_open: bool = True
    status: int | None = None


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a page shows at one moment."""

    documents: int
    url: str
    text: str = ""
    loading: int = 0
    busy: bool = False

    def shows_same(self, other: _Shown) -> bool:
        """Return whether the page shows the same as at another moment."""
        mine, others = (self.documents, self.url), (other.documents, other.url)
        return mine == others and self.text == other.text


@dataclass(eq=False)  # without slots: Playwright sets attributes on the owners of listeners
class SubmitWatch:
    """Watches one tab from just before a form is submitted.

    Attributes:
        sent: the requests since then, with the texts that may have a query.
        has_sent: one of them may have sent a form.
    """

    tab: Tab
    before: _Shown
    sent: dict[object, _Sent] = field(default_factory=dict)
    has_sent: bool = False

    def on_request(self, request: Request) -> None:
        """Record a request with the texts that may have the query."""
        body = (request.post_data_buffer or b"")[:BODY_BYTES].decode("utf-8", errors="replace")
        if request.resource_type in _SENDING:
            self.has_sent = True
        is_page = request.is_navigation_request() and request.frame.parent_frame is None
        self._add(request, _Sent([*_values_of(request.url), *_values_in(body)], is_page))

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
        self.has_sent = True
        text = payload if isinstance(payload, str) else payload.decode(errors="replace")
        self._add(object(), _Sent(_values_in(text[:BODY_BYTES]), is_socket=True, is_open=False))

    def _add(self, key: object, sent: _Sent) -> None:
        if len(self.sent) < MAX_REQUESTS:
            self.sent[key] = sent

    def stop(self) -> None:
        """Stop watching."""
        for event, listener in self._listeners():
            self.tab.page.remove_listener(event, listener)
        self.tab.submit_watch = None

    def start(self) -> None:
        """Start watching; replaces an earlier watch of the tab."""
        if (earlier := self.tab.submit_watch) is not None:
            earlier.stop()
        for event, listener in self._listeners():
            self.tab.page.on(event, listener)
        self.tab.submit_watch = self

    def _listeners(self) -> Iterator[tuple[Any, Any]]:
        yield "request", self.on_request
        yield "response", self.on_response
        yield "requestfinished", self.on_end
        yield "requestfailed", self.on_end
        yield "websocket", self.on_socket

    def with_query(self, query: str) -> list[_Sent]:
        """Return the requests that have the query."""
        return [sent for sent in self.sent.values() if any(_has(t, query) for t in sent.texts)]

    def evidence(self, query: str, now: _Shown) -> str:
        """Return what shows that the search happened: request, address or page; "" if nothing."""
        if self.with_query(query):
            return "request"
        if now.url != self.before.url and any(_has(text, query) for text in _values_of(now.url)):
            return "address"
        return "page" if self.shows_other(now) else ""

    def shows_other(self, now: _Shown) -> bool:
        """Return whether the page shows another text than before."""
        return now.text not in ("", self.before.text)

    def has_reaction(self, now: _Shown) -> bool:
        """Return whether the page requested or showed anything since."""
        return self.has_sent or now.documents != self.before.documents or self.shows_other(now)

    def is_busy(self, query: str, now: _Shown) -> bool:
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

    def is_loading(self, now: _Shown) -> bool:
        """Return whether the page says that something is still to come, and did not before."""
        return now.loading > (self.before.loading if now.documents == self.before.documents else 0)


async def watch(tab: Tab) -> None:
    """Watch a tab from now on, just before a form is submitted."""
    SubmitWatch(tab, await _shown(tab)).start()


async def has_reacted(tab: Tab) -> bool | None:
    """Return whether a watched page requested or showed anything since, within REACTION_SECONDS
    from now; None if it is not watched. Ends the watch.
    """
    watch = tab.submit_watch
    if watch is None:
        return None
    until = time.monotonic() + REACTION_SECONDS
    try:
        while not (reacted := watch.has_reaction(await _shown(tab))) and time.monotonic() < until:
            await asyncio.sleep(POLL_SECONDS)
        return reacted
    finally:
        watch.stop()


async def confirm_search(
    tab: Tab, query: str, *, has_results: bool, seconds: float
) -> tuple[str, list[str]]:
    """Wait until a watched search is seen to have happened and its results hold still; return what
    shows it, and warnings.

    Args:
        has_results: the caller knows that the results are shown; nothing is waited for.

    Raises:
        SearchNotConfirmed: Nothing shows that the search happened, or its request failed.
        NavigationTimeout: The results were still loading when the time was up.
    """
    watch = tab.submit_watch
    if watch is None:
        raise SearchNotConfirmed("No search was submitted.", details={"reason": "not_watched"})
    try:
        if has_results:
            return watch.evidence(query, await _shown(tab)) or "results", []
        return await _wait_for_results(watch, query, seconds)
    finally:
        watch.stop()


async def _wait_for_results(
    watch: SubmitWatch, query: str, seconds: float
) -> tuple[str, list[str]]:
    began = still_since = time.monotonic()
    last = await _shown(watch.tab)
    while True:
        await asyncio.sleep(POLL_SECONDS)
        now = await _shown(watch.tab)
        moment = time.monotonic()
        if not now.shows_same(last):
            still_since = moment
        last = now
        is_ready = moment - still_since >= STILL_SECONDS and not watch.is_loading(now)
        is_late = moment - began >= seconds
        evidence, is_busy = watch.evidence(query, now), watch.is_busy(query, now)
        if evidence and is_ready and (is_late or not is_busy):
            watch.check_answers(query)
            return evidence, ["The page was still requesting data."] if is_busy else []
        is_idle = is_ready and not is_busy and moment - began >= NOTHING_SECONDS
        if is_late or is_idle:
            raise _not_confirmed(query, now, evidence, seconds)


async def _shown(tab: Tab) -> _Shown:
    """Return what the page shows; of a page that is being replaced, that it is busy."""
    documents, url = tab.documents, tab.page.url
    if not tab.is_leaving:
        with contextlib.suppress(ContextLost):
            state = await run_command(tab, "shownState", seconds=ANSWER_SECONDS)
            return _Shown(documents, url, state["text"], state["loading"], state["busy"])
    return _Shown(documents, url, busy=True)


def _not_confirmed(query: str, now: _Shown, evidence: str, seconds: float) -> ToolFailed:
    if evidence:
        return NavigationTimeout(
            f"The search was sent, but its results were still loading after {seconds:g} s; give"
            " waitForResults a condition that holds once they are shown.",
            details={"url": now.url, "evidence": evidence},
        )
    return SearchNotConfirmed(
        f"The query “{query[:100]}” was entered and submitted, but no search happened: no request"
        " and no address has the query, and what the page shows did not change.",
        details={"reason": "nothing_happened", "url": now.url},
    )


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
    except ValueError:
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
