"""A run's events as server-sent events (`text/event-stream`)."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from django.http import StreamingHttpResponse

from decisions.foundation.errors import InvalidInput, Refused
from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal
from runs.queries import runs
from runs.streaming.credential_checks import is_still_active
from runs.streaming.hub import get_hub
from runs.streaming.subscriber import Subscriber, frames_of

MEDIA_TYPE = "text/event-stream"
PAGE = 500  # events per read
KEEP_ALIVE_S = 15.0  # interval of comments, so that proxies keep an idle stream open
Page = tuple[dict[str, Any], int]  # {events, lastSeq, terminal}, and the seq where the log ends
ReadPage = Callable[..., Page]  # with principal, run_id, after, limit
log = logging.getLogger(__name__)


def stream_events(
    *, principal: Principal, run_id: str, first: Mapping[str, Any], read: ReadPage | None = None
) -> StreamingHttpResponse:
    """Return a response that sends the page `first` and every later event, until the event that
    ends the run, or until the server shuts down.

    Args:
        run_id: the run of the log.
        read: reads a page of another log, which has no end, such as a task's; `run_id` is its id.
    """
    return StreamingHttpResponse(
        _lines(principal, run_id, first, read),
        content_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


def last_event_id(text: str, after: int) -> int:
    """Return the seq in a `Last-Event-ID` header, which a reader sends on reconnect, else `after`.

    Raises:
        InvalidInput: The header is not the id of an event.
    """
    if not text:
        return after
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise InvalidInput("Last-Event-ID: must be the id of an event, a whole number.")
    return int(text)


async def _lines(
    principal: Principal,
    run_id: str,
    first: Mapping[str, Any],
    read: ReadPage | None = None,
) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n" + frames_of(first["events"])
    if first["terminal"]:
        return
    try:
        async with get_hub().subscribe(run_id) as (_, subscriber):
            subscriber.wake_every(KEEP_ALIVE_S)
            read_page = partial(
                read or runs.list_events_and_seq, principal=principal, run_id=run_id
            )
            follow = _follow(read_page, first["lastSeq"], subscriber, has_end=read is None)
            async with aclosing(follow) as parts:
                async for part in parts:
                    if not await is_still_active(principal):
                        return
                    yield part
    except Refused:
        return  # the run was deleted, past its retention, while it was streamed
    except Exception:
        # The status line is sent already: the reader reconnects and gets an error.
        log.exception("a stream of events failed", extra={"runId": run_id})


async def _follow(
    read_page: ReadPage, after: int, subscriber: Subscriber, *, has_end: bool
) -> AsyncGenerator[bytes, None]:
    """Yield the events after `after`, and a comment whenever the keep-alive timer fires."""
    has_ended = False
    while not (has_ended or subscriber.is_closed):
        if subscriber.is_behind:
            page = await _next_page(read_page, after, subscriber)
            after, has_ended = page["lastSeq"], page["terminal"]
            if page["events"]:
                yield frames_of(page["events"])
        elif batches := subscriber.take():
            after, has_ended = batches[-1].last, has_end and batches[-1].is_final
            yield (
                batches[0].frames
                if len(batches) == 1
                else b"".join([batch.frames for batch in batches])
            )
        else:
            await subscriber.wait()
            if not subscriber.is_ready:
                yield b": still there\n\n"


async def _next_page(read_page: ReadPage, after: int, subscriber: Subscriber) -> dict[str, Any]:
    """Read the next page for a subscriber that is behind; after the last page it is not."""
    page, log_seq = await in_thread(partial(read_page, after=after, limit=PAGE))
    if len(page["events"]) < PAGE:
        subscriber.mark_read(page["lastSeq"], log_seq=log_seq)
    return page
