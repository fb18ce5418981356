"""The event stream of the admin's pages: which rows changed, and what waits for a person.

A browser opens one stream for all its tabs (static/continuity/changes.js). The stream has ids and
counts, no content: a page requests what changed from its own view, which checks permissions. A
viewer receives the topics whose rows he may view.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

import orjson
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import admin
from django.contrib.auth import get_user
from django.core.exceptions import PermissionDenied
from django.db import Error, connections
from django.http import HttpRequest, HttpResponseNotAllowed, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.views.decorators.cache import never_cache

from decisions.foundation.infra.threads import in_thread
from decisions.foundation.validation.json_output import escape_line_separators
from runs.queries.waiting import DECISION, Waiting, WaitingRow
from runs.streaming.changes import ChangeReader
from runs.streaming.hub import get_hub
from runs.streaming.sse import KEEP_ALIVE_S, MEDIA_TYPE

CHECK_S = 10.0  # interval at which the session and the permissions are checked again
GAP_S = 0.5  # between two messages: a busy installation changes hundreds of rows a second
_PAGES = {DECISION: "decisions_decision"}
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Viewer:
    """What a signed-in user may view: the topics, and what waits for a person."""

    topics: frozenset[str]
    decisions: bool
    questions: bool


def change_stream(request: HttpRequest) -> HttpResponseBase:
    """Return the event stream of the signed-in user.

    Raises:
        PermissionDenied: The user may view no rows at all.
    """
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    viewer = viewer_of(request.user)
    if not viewer.topics:
        raise PermissionDenied
    return StreamingHttpResponse(
        _without_connection(stream_changes(viewer, request.session.session_key)),
        content_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


def viewer_of(user: Any) -> Viewer:
    """Return what a user may view: a topic is the name of a model with an admin page."""
    labels = [model._meta for model in admin.site._registry]
    topics = {
        meta.model_name or ""
        for meta in labels
        if meta.app_label != "auth" and user.has_perm(f"{meta.app_label}.view_{meta.model_name}")
    }
    sees_inbox = "decision" in topics
    return Viewer(frozenset(topics), sees_inbox, sees_inbox and "run" in topics)


def sees_waiting(user: Any) -> dict[str, bool]:
    """Return what a user sees of what waits for a person, as `count_waiting` takes it."""
    sees_inbox = user.has_perm("decisions.view_decision")
    return {"decisions": sees_inbox, "questions": sees_inbox and user.has_perm("runs.view_run")}


async def stream_changes(viewer: Viewer, session_key: str | None) -> AsyncGenerator[bytes, None]:
    """Yield messages until the session ends, the viewer's permissions change, or the server shuts
    down; the browser then connects again.
    """
    yield b"retry: 2000\n\n"
    checked_at = sent_at = time.monotonic()
    try:
        async with get_hub().follow_changes(viewer.topics) as reader:
            while not reader.is_closed:
                await reader.wait(CHECK_S)
                now = time.monotonic()
                if now - checked_at >= CHECK_S:
                    checked_at = now
                    if await in_thread(_viewer_of_session, session_key) != viewer:
                        return
                if message := _message(viewer, reader):
                    sent_at = now
                    yield message
                    await reader.pause(GAP_S)
                elif now - sent_at >= KEEP_ALIVE_S:
                    sent_at = now
                    yield b": still there\n\n"
    except Error as error:  # the status line is sent already: the browser connects again
        log.warning("a stream of changes ends: %s", error)


def _viewer_of_session(session_key: str | None) -> Viewer | None:
    """Return what the user of a session may view now; None if the session is over."""
    store = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(cast("HttpRequest", SimpleNamespace(session=store)))
    return viewer_of(user) if user.is_authenticated and user.is_staff and user.is_active else None


def _message(viewer: Viewer, reader: ChangeReader) -> bytes:
    changed, waiting = reader.take()
    data: dict[str, Any] = {"changed": changed} if changed else {}
    if waiting is not None and viewer.decisions:
        data["waiting"] = _waiting_data(
            waiting.for_viewer(decisions=viewer.decisions, questions=viewer.questions)
        )
    return b"data: %b\n\n" % escape_line_separators(orjson.dumps(data)) if data else b""


def _waiting_data(waiting: Waiting) -> dict[str, Any]:
    rows = [
        {"key": row.key, "title": ": ".join(filter(None, (row.title, row.line))), "url": _url(row)}
        for row in waiting.rows
    ]
    return {"count": waiting.count, "rows": rows}


def _url(row: WaitingRow) -> str:
    return reverse(f"admin:{_PAGES.get(row.kind, 'runs_run')}_change", args=[row.row_id])


async def _without_connection(lines: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """Yield the lines; first close the database connection of the request's thread, which would
    stay open for as long as the stream.
    """
    await sync_to_async(connections.close_all)()
    async with aclosing(lines) as parts:
        async for part in parts:
            yield part


def change_stream_urls() -> list[URLPattern]:
    """Return the URL of the stream."""
    view = admin.site.admin_view(never_cache(change_stream))
    return [path("changes/", view, name="changes")]
