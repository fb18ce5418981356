"""A run's events as server-sent events (`text/event-stream`)."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from django.http import StreamingHttpResponse

from decisions.errors import InvalidInput, Refused
from decisions.identity.principals import Principal, still_may
from decisions.infra.threads import in_thread
from runs.queries import runs
from runs.streaming.hub import get_hub
from runs.streaming.subscriber import Listener, frames_of

MEDIA_TYPE = "text/event-stream"
PAGE = 500  # events read at once
KEEP_ALIVE_S = 15.0  # a comment this often, so that proxies keep a quiet stream open
CHECK_S = 15.0  # how often it is asked whether the reader still may read
Page = tuple[dict[str, Any], int]  # {events, lastSeq, terminal}, and how far the log goes
ReadPage = Callable[[Principal, str, int, int], Page]  # of whose log, behind which seq, how many
log = logging.getLogger(__name__)


def read_run_page(principal: Principal, run_id: str, after: int, limit: int) -> Page:
    """Read a page of a run's log."""
    return runs.list_events_and_seq(principal=principal, run_id=run_id, after=after, limit=limit)


def stream_events(
    *, principal: Principal, run_id: str, first: Mapping[str, Any], read: ReadPage = read_run_page
) -> StreamingHttpResponse:
    """Return an answer that sends the page `first` and whatever follows it, up to the event that
    ends the run or to the end of the server.

    Args:
        run_id: whose log it is; with another `read` that of a task, which has no end.
    """
    return StreamingHttpResponse(
        _lines(principal, run_id, first, read),
        content_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


def last_event_id(text: str, after: int) -> int:
    """Return where a reader goes on that comes back with this header, else `after`.

    Raises:
        InvalidInput: No event has such an id.
    """
    if not text:
        return after
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise InvalidInput("Last-Event-ID: it has to be the id of an event, a whole number.")
    return int(text)


async def _lines(
    principal: Principal, run_id: str, first: Mapping[str, Any], read: ReadPage = read_run_page
) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n" + frames_of(first["events"])
    if first["terminal"]:
        return
    try:
        async with get_hub().listen(run_id) as (_, listener):
            listener.wake_every(KEEP_ALIVE_S)
            page_of = partial(read, principal, run_id)
            follow = _follow(page_of, first["lastSeq"], listener, ends=read is read_run_page)
            follow = _while_allowed(principal, follow)
            async with aclosing(follow) as parts:
                async for part in parts:
                    yield part
    except Refused:
        return  # the run passed its time while it was watched
    except Exception:
        # The status went out long ago: the reader comes back with its last id and is told then.
        log.exception("a stream of events broke off", extra={"runId": run_id})


async def _follow(
    page_of: Callable[[int, int], Page], after: int, listener: Listener, *, ends: bool
) -> AsyncGenerator[bytes, None]:
    """Yield what comes behind `after`, and a comment whenever the listener wakes over nothing."""
    is_over = False
    while not (is_over or listener.is_closed):
        if listener.is_behind:
            page = await _page(page_of, after, listener)
            after, is_over = page["lastSeq"], page["terminal"]
            if page["events"]:
                yield frames_of(page["events"])
        elif batches := listener.take():
            after, is_over = batches[-1].last, ends and batches[-1].is_final
            yield (
                batches[0].frames
                if len(batches) == 1
                else b"".join([batch.frames for batch in batches])
            )
        else:
            await listener.news()
            if not listener.has_news:
                yield b": still there\n\n"


async def _while_allowed(
    principal: Principal, parts: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """Pass parts on, and ask now and then whether the reader still may have them."""
    checked = time.monotonic()
    async with aclosing(parts):
        async for part in parts:
            if time.monotonic() - checked >= CHECK_S:
                checked = time.monotonic()
                if not await in_thread(still_may, principal):
                    return
            yield part


async def _page(
    page_of: Callable[[int, int], Page], after: int, listener: Listener
) -> dict[str, Any]:
    """Return the next page of a reader that is behind; with the last one it has caught up."""
    page, reached = await in_thread(page_of, after, PAGE)
    if len(page["events"]) < PAGE:
        listener.has(page["lastSeq"], of=reached)
    return page
