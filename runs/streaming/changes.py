"""Which rows of the installation changed, for the open pages of the admin.

A topic is the name of a model. Messages over Redis report changes of runs at once; every POLL_S the
new rows of the audit log report all others, because every change of a row that people see is
audited. So a change that is neither published nor audited (a heartbeat) is not reported: pages
refresh such values by themselves.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from django.db import Error

from decisions.foundation.infra.outages import Outage
from decisions.foundation.infra.threads import in_thread
from decisions.foundation.presentation.resource_types import model_name_of
from decisions.models import AuditEntry
from runs.events.types import PIECES
from runs.queries.waiting import DECISION, Waiting, list_waiting
from runs.streaming.subscriber import Reader

POLL_S = 2.0
WAITING_S = 10.0  # interval at which expired decisions and questions are counted out
RECENT_S = 10.0  # how old changes are that a new reader gets: its page may be as old
ROWS = 500  # of the audit log per read; after more, pages refresh whatever they show
IDS = 20  # of one topic; after more, pages refresh whatever row they show
RUN, TASK, AUDIT = "run", "task", "auditentry"
_WAITS = frozenset({"run.waiting", "run.resumed", "run.failed", "run.canceled"})
_TOO_MANY: frozenset[str] = frozenset()
log = logging.getLogger(__name__)


class ChangeReader(Reader):
    """Collects changes until its reader takes them. Use it on the event loop only.

    Args:
        topics: the topics that its reader may see; others are ignored.
    """

    def __init__(self, topics: frozenset[str]) -> None:
        super().__init__()
        self.topics = topics
        self._changed: dict[str, frozenset[str]] = {}
        self._waits: Waiting | None = None

    def add(self, topic: str, ids: Iterable[str]) -> None:
        """Collect the ids of changed rows; without an id, any row may have changed."""
        if topic not in self.topics:
            return
        before, new = self._changed.get(topic), frozenset(ids)
        if before is not None:
            new = before | new if before and new else _TOO_MANY
        self._changed[topic] = new if len(new) <= IDS else _TOO_MANY
        self.wake()

    def add_all(self) -> None:
        """Collect that any row of any topic may have changed."""
        for topic in self.topics:
            self.add(topic, ())

    def set_waiting(self, waiting: Waiting) -> None:
        """Collect what waits for a person."""
        self._waits = waiting
        self.wake()

    def take(self) -> tuple[dict[str, list[str] | None], Waiting | None]:
        """Remove and return what was collected: by topic the ids of changed rows, None for any; and
        what waits for a person, if that changed.
        """
        changed = {topic: sorted(ids) or None for topic, ids in self._changed.items()}
        waiting, self._changed, self._waits = self._waits, {}, None
        return changed, waiting

    async def wait(self, timeout_s: float) -> None:
        """Return when something is collected, when the reader has to stop, or after the timeout."""
        if not (self._changed or self._waits or self.is_closed):
            await self.wait_until_woken(timeout_s)

    async def pause(self, seconds: float) -> None:
        """Return after this time, or when the reader has to stop, whatever is collected."""
        until = time.monotonic() + seconds
        while not self.is_closed and (left := until - time.monotonic()) > 0:
            await self.wait_until_woken(left)


class ChangeFeed:
    """Distributes changes to the readers of one event loop."""

    def __init__(self) -> None:
        self.readers: set[ChangeReader] = set()
        self.poll_now = asyncio.Event()
        self._last_id: int | None = None
        self._changed_at: dict[str, float] = {}  # by topic, on the monotonic clock
        self._waiting: Waiting | None = None
        self._waiting_at = 0.0
        self._database = Outage(
            log,
            on_failure="changes for the admin's pages cannot be read from the database, retrying",
            on_recovery="changes for the admin's pages can be read from the database again",
        )

    def join(self, reader: ChangeReader) -> None:
        """Add a reader, with what waits for a person and the topics that changed of late."""
        self.readers.add(reader)
        if self._waiting is not None:
            reader.set_waiting(self._waiting)
        for topic, at in self._changed_at.items():
            if time.monotonic() - at < RECENT_S:
                reader.add(topic, ())
        self.poll_now.set()

    def leave(self, reader: ChangeReader) -> None:
        """Remove a reader; what waits is read again for the next one after the last."""
        self.readers.discard(reader)
        if not self.readers:
            self._waiting = None

    def add(self, topic: str, row_id: str) -> None:
        """Report a changed row."""
        if type(topic) is str and type(row_id) is str:
            self._distribute(topic, [row_id])
            if topic == DECISION:
                self._read_waiting_soon()

    def add_events(self, log_id: str, types: frozenset[str]) -> None:
        """Report a run or task whose log has new events; pieces of text change no page."""
        if types and types <= PIECES.keys():
            return
        self._distribute(TASK if log_id.startswith("task_") else RUN, [log_id])
        if not types.isdisjoint(_WAITS):
            self._distribute(DECISION, [])
            self._read_waiting_soon()

    def _read_waiting_soon(self) -> None:
        self._waiting_at = 0.0
        self.poll_now.set()

    async def poll(self) -> None:
        """Report new audit rows and what waits for a person, every POLL_S or at `poll_now`."""
        self._last_id, self._waiting, self._waiting_at = None, None, 0.0
        while True:
            try:
                await self._poll_once()
                self._database.recovered()
            except Error as error:
                self._database.failed(error)
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self.poll_now.wait()
            self.poll_now.clear()

    async def _poll_once(self) -> None:
        rows = await in_thread(_rows_after, self._last_id)
        is_overflow = self._last_id is not None and len(rows) == ROWS
        self._last_id = max((row[0] for row in rows), default=self._last_id or 0)
        topics = {model_name_of(row[1]) for row in rows}
        for _, resource_type, resource_id in rows:
            self._distribute(model_name_of(resource_type), [resource_id])
        if rows:
            self._distribute(AUDIT, [])
        if is_overflow:
            for reader in self.readers:
                reader.add_all()
        if DECISION in topics or time.monotonic() - self._waiting_at >= WAITING_S:
            await self._read_waiting()

    async def _read_waiting(self) -> None:
        self._waiting_at = time.monotonic()
        waiting = await in_thread(list_waiting)
        if waiting != self._waiting:
            self._waiting = waiting
            for reader in self.readers:
                reader.set_waiting(waiting)

    def _distribute(self, topic: str, ids: Sequence[str]) -> None:
        self._changed_at[topic] = time.monotonic()
        for reader in self.readers:
            reader.add(topic, ids)


def _rows_after(last_id: int | None) -> list[tuple[int, str, str]]:
    """Return the newest audit rows after an id, or those of the last RECENT_S: id, type, id of the
    resource.
    """
    rows = AuditEntry.objects.order_by("-id")
    if last_id is not None:
        rows = rows.filter(id__gt=last_id)
        return list(rows.values_list("id", "resource_type", "resource_id")[:ROWS])
    since = datetime.now(UTC) - timedelta(seconds=RECENT_S)
    newest = rows.values_list("id", "resource_type", "resource_id", "created_at")[:ROWS]
    found = list(newest)
    recent = [(row[0], row[1], row[2]) for row in found if row[3] and row[3] >= since]
    return recent or [(row[0], row[1], row[2]) for row in found[:1]]
