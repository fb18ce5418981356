"""A run's events as server-sent events (`text/event-stream`)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson
from django.http import StreamingHttpResponse

from decisions.errors import Refused
from decisions.principals import Principal
from runs.waiting import wait_events

MEDIA_TYPE = "text/event-stream"
PAGE = 500  # events read at once
KEEP_ALIVE_S = 15.0  # a comment this often, so that proxies keep a quiet stream open
log = logging.getLogger(__name__)


def stream_events(
    *, principal: Principal, run_id: str, first: Mapping[str, Any]
) -> StreamingHttpResponse:
    """Return an answer that sends the page `first` and whatever follows it, up to the event that
    ends the run.
    """
    return StreamingHttpResponse(
        _lines(principal, run_id, first),
        content_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


async def _lines(
    principal: Principal, run_id: str, page: Mapping[str, Any]
) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    try:
        while True:
            if page["events"]:
                yield b"".join(map(_line, page["events"]))
            elif not page["terminal"]:
                yield b": still there\n\n"
            if page["terminal"]:
                return
            page = await wait_events(
                principal=principal,
                run_id=run_id,
                after=page["lastSeq"],
                wait_s=KEEP_ALIVE_S,
                limit=PAGE,
            )
    except Refused:
        return  # the run passed its time while it was watched
    except Exception:
        # The status went out long ago: the reader comes back with its last id and is told then.
        log.exception("a stream of events broke off", extra={"runId": run_id})


def _line(event: Mapping[str, Any]) -> bytes:
    return b"id: %d\ndata: %b\n\n" % (event["seq"], orjson.dumps(event))
