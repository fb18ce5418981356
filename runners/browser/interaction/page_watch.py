"""What a page requested and showed since a form was submitted, and whether a search happened.

A search happened if the query is in a request or in the page's address, or if what the page shows
changed and then held still. What changes by itself, such as clocks and counters, does not count
(page/changes.js).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote_plus, urlsplit

from runners.browser.errors import ContextLost
from runners.browser.interaction.form_watch import FormBefore
from runners.browser.interaction.locator import run_command
from runners.browser.session.tab import Tab
from runners.errors import NavigationTimeout, SearchNotConfirmed, ToolFailed

if TYPE_CHECKING:
    from playwright.async_api import Request, Response, WebSocket

STILL_SECONDS = 0.5
NOTHING_SECONDS = 4.0  # after which a page that shows and requests nothing did not search
REACTION_SECONDS = 3.0
LEARN_SECONDS = 1.2  # longer than a clock needs that shows seconds
BEGIN_SECONDS = 1.5
UNPROVEN_SECONDS = 2.0  # more, until a changed text has held still longer than a clock would
ANSWER_SECONDS = 5.0
POLL_SECONDS = 0.1
MAX_REQUESTS = 300
BODY_BYTES = 64 * 1024
_ENCODINGS = ("utf-8", "gb18030", "latin-1")  # of a query in an address
_NO_WORD = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"\d+")
# Kinds of requests that may send a form; images, styles and beacons do not.
_SENDING = frozenset({"document", "xhr", "fetch", "websocket"})


@dataclass(slots=True)
class _Sent:
    texts: list[str]
    is_page: bool = False
    is_post: bool = False
    is_socket: bool = False
    is_open: bool = True
    status: int | None = None


@dataclass(frozen=True, slots=True)
class _Shown:
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

    tab: Tab
    before: _Shown
    known: frozenset[str] = frozenset()
    sent: dict[object, _Sent] = field(default_factory=dict)
    signatures: set[str] = field(default_factory=set)
    has_sent: bool = False
    form: FormBefore | None = None

    def on_request(self, request: Request) -> None:
        """Record a request with the texts that may have the query."""
        body = (request.post_data_buffer or b"")[:BODY_BYTES].decode("utf-8", errors="replace")
        if request.resource_type in _SENDING:
            self._note_sending(_signature(request.method, request.url, body))
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
        self._note_sending(_signature("websocket", "", text[:BODY_BYTES]))
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
        """Return whether the page shows another text than before, and keeps it.

        Another document at the same address is the same page, loaded again, unless it was posted.
        """
        if now.documents == self.before.documents:
            return now.changed
        was_posted = any(sent.is_page and sent.is_post for sent in self.sent.values())
        is_other = was_posted or _page_of(now.url) != _page_of(self.before.url)
        return is_other and now.text not in ("", self.before.text)

    def may_show_other(self, now: _Shown) -> bool:
        """Return whether the page shows another text, of which it is not known whether it stays."""
        return now.documents == self.before.documents and now.touched and not now.changed

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


async def watch(tab: Tab, *, learns: bool = False) -> None:
    """Watch a tab from now on, just before a form is submitted.

    Args:
        learns: nothing is submitted yet: what the page requests and changes until the next call,
            it does by itself.
    """
    earlier = tab.submit_watch
    before = await _shown(tab, command="watchTexts", learns=learns)
    known = frozenset(_signature("GET", url) for url in before.requested)
    if earlier is not None and earlier.before.documents == before.documents:
        known |= earlier.known | earlier.signatures
    SubmitWatch(tab, before, known).start()


async def observe_untouched(tab: Tab) -> None:
    """Watch a tab again from now on, after having learned what it requests and changes by itself
    for longer than a second.
    """
    await watch(tab, learns=True)
    until = time.monotonic() + 2 * LEARN_SECONDS
    while (await _shown(tab)).untouched_seconds < LEARN_SECONDS and time.monotonic() < until:
        await asyncio.sleep(POLL_SECONDS)
    await watch(tab)


async def has_begun(tab: Tab, query: str) -> bool:
    """Return whether a search that was submitted in a watched tab has begun, within BEGIN_SECONDS
    from now: the page requests something, navigates, or shows something, other than by itself.
    """
    until = time.monotonic() + BEGIN_SECONDS
    while (watch := tab.submit_watch) is not None:
        now = await _shown(tab)
        is_other = now.documents != watch.before.documents or now.url != watch.before.url
        if is_other or tab.is_leaving or watch.has_sent or watch.with_query(query) or now.touched:
            return True
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True  # of a tab that is not watched nothing is known


@contextlib.asynccontextmanager
async def watched_input(tab: Tab) -> AsyncIterator[Callable[[str], Awaitable[bool]]]:
    """Watch a tab while the block sends input; yields `has_begun` of this tab, which says whether
    the input started anything, also if the page does not answer any more.
    """
    with contextlib.suppress(ToolFailed):
        await watch(tab)

    async def has_effect(text: str) -> bool:
        with contextlib.suppress(ToolFailed):
            return await has_begun(tab, text)
        return True

    try:
        yield has_effect
    finally:
        if tab.submit_watch is not None:
            tab.submit_watch.stop()


async def since_submit(tab: Tab) -> dict[str, bool] | None:
    """Return {navigated, requested, changed}: what a watched tab did since, other than by itself;
    None if it is not watched.
    """
    if (watch := tab.submit_watch) is None:
        return None
    now = await _shown(tab)
    navigated = tab.is_leaving or now.documents != watch.before.documents
    return {"navigated": navigated, "requested": watch.has_sent, "changed": now.touched}


async def has_reacted(tab: Tab) -> bool | None:
    """Return whether a watched page requested or showed anything since, within REACTION_SECONDS
    from now; None if it is not watched. Ends the watch.
    """
    watch = tab.submit_watch
    if watch is None:
        return None
    until = time.monotonic() + REACTION_SECONDS
    try:
        while not watch.has_reaction(now := await _shown(tab)):
            late = time.monotonic() - until
            if late > 0 and not (watch.may_show_other(now) and late < UNPROVEN_SECONDS):
                return False
            await asyncio.sleep(POLL_SECONDS)
        return True
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
    began = time.monotonic()
    while True:
        now = await _shown(watch.tab)
        waited = time.monotonic() - began
        is_ready = min(now.still_seconds, waited) >= STILL_SECONDS and not watch.is_loading(now)
        is_late = waited >= seconds
        evidence, is_busy = watch.evidence(query, now), watch.is_busy(query, now)
        if evidence and is_ready and (is_late or not is_busy):
            watch.check_answers(query)
            return evidence, ["The page was still requesting data."] if is_busy else []
        may_come = is_busy or watch.may_show_other(now)
        if is_late or (is_ready and not may_come and waited >= NOTHING_SECONDS):
            raise _not_confirmed(query, now, evidence, seconds)
        await asyncio.sleep(POLL_SECONDS)


async def _shown(tab: Tab, *, command: str = "shownState", **args: Any) -> _Shown:
    """Return what the page shows; of a page that is being replaced, that it is busy."""
    documents, url = tab.documents, tab.page.url
    if not tab.is_leaving:
        with contextlib.suppress(ContextLost):
            state = await run_command(tab, command, args, seconds=ANSWER_SECONDS)
            return _Shown(
                documents,
                url,
                **{name: state[name] for name in ("text", "loading", "busy", "touched", "changed")},
                still_seconds=state["stillMs"] / 1000,
                untouched_seconds=state["untouchedMs"] / 1000,
                requested=tuple(state.get("requested", ())),
            )
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


def _signature(method: str, url: str, body: str = "") -> str:
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
