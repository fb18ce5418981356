"""Buffer the events of a run's steps, in order, until they are written to its log.

The output of models and tools arrives in up to hundreds of pieces a second. The first piece is
written at once; the next ones wait until MERGE_S passed or they have MERGE_BYTES, and consecutive
pieces of one text become one event. Of such events a run stores up to MAX_STREAMED_BYTES; the last
one has `truncated` set.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from decisions.foundation.validation.storable import storable
from runs.events.types import PIECES
from runs.lifecycle.changes import NewEvent
from runs.models import RunEvent

MERGE_S = 0.1
MERGE_BYTES = 1024
MAX_STREAMED_BYTES = 1024 * 1024  # per run, as JSON
MAX_EVENTS = 256  # write at this many, even if more keep arriving


@dataclass(slots=True)
class _Waiting:
    type: str
    data: dict[str, Any]
    size: int = 0  # bytes of its text

    def joins(self, later: _Waiting, piece: str) -> bool:
        """Append the text of a later event and return True, if both are pieces of one text."""
        texts = self.data.get(piece), later.data.get(piece)
        if self.type != later.type or not all(isinstance(text, str) for text in texts):
            return False
        ours, theirs = ({**one.data, piece: "", "at": 0} for one in (self, later))
        if ours != theirs or self.size + later.size > MERGE_BYTES:
            return False
        self.data[piece] += later.data[piece]
        self.size += later.size
        return True


class EventBuffer:
    """The buffer of one lease of a run; used on the run's thread only.

    Args:
        mask: removes secrets from an event.
        count_stored: returns the bytes of streamed events in the run's log; called once, at the
            first one.
    """

    def __init__(
        self, mask: Callable[[NewEvent], NewEvent], count_stored: Callable[[], int]
    ) -> None:
        self._mask, self._count_stored = mask, count_stored
        self._stored: int | None = None
        self._waiting: list[_Waiting] = []
        # By step and call: the event that its next piece may be merged into.
        self._last: dict[str, dict[str, _Waiting]] = {}
        self._due_at = math.inf
        self._size = 0
        self._written_at = -math.inf

    def add(self, event: NewEvent) -> None:
        """Add an event of a step."""
        one = _Waiting(event.type, storable(self._mask(event).data))
        if event.type in PIECES:
            self._add_piece(one, PIECES[event.type])
            return
        self._waiting.append(one)
        self._last.clear()  # no pieces are merged across it
        self._due_at = -math.inf

    def events(self) -> list[NewEvent]:
        """Return the buffered events, in order."""
        # Masked again: a merged text may contain a secret that none of its pieces did.
        return [self._mask(NewEvent(one.type, one.data)) for one in self._waiting]

    def clear(self) -> None:
        """Empty the buffer: its events are written."""
        if self._size:
            self._written_at = time.monotonic()
        self._waiting, self._last = [], {}
        self._due_at, self._size = math.inf, 0

    def due_in(self) -> float:
        """Return the seconds until the buffer should be written; infinity when it is empty."""
        return max(0.0, self._due_at - time.monotonic())

    @property
    def is_due(self) -> bool:
        """Whether the buffer should be written now."""
        return self.due_in() == 0.0

    @property
    def is_full(self) -> bool:
        """Whether the buffer must be written before more events are added."""
        return len(self._waiting) >= MAX_EVENTS

    def _add_piece(self, one: _Waiting, piece: str) -> None:
        if self._stored is None:
            self._stored = self._count_stored()
        if self._stored >= MAX_STREAMED_BYTES:
            return
        size = size_of(one.data)
        if self._stored + size > MAX_STREAMED_BYTES:
            one.data = _cut(one.data, piece, MAX_STREAMED_BYTES - self._stored)
            size = MAX_STREAMED_BYTES
        text = one.data.get(piece)
        one.size = len(text.encode()) if isinstance(text, str) else 0
        calls = self._last.setdefault(str(one.data.get("step")), {})
        if any(last.type != one.type for last in calls.values()):
            calls.clear()  # a model's text after a tool's update stays after it
        call = str(one.data.get("toolCallId"))
        if call in calls and calls[call].joins(one, piece):
            size = one.size
        else:
            self._waiting.append(one)
            calls[call] = one
        self._stored += size
        self._size += size
        self._due_at = min(self._due_at, self._written_at + MERGE_S)
        if self._size >= MERGE_BYTES:
            self._due_at = -math.inf


def stored_bytes(run_id: str) -> int:
    """Return the bytes of streamed events in the run's log; MAX_STREAMED_BYTES once truncated."""
    rows = RunEvent.objects.filter(run_id=run_id, type__in=PIECES)
    stored: list[Mapping[str, Any]] = list(rows.values_list("data", flat=True))
    if any("truncated" in data for data in stored):
        return MAX_STREAMED_BYTES
    return sum(map(size_of, stored))


def size_of(data: Mapping[str, Any]) -> int:
    """Return the size of an event's data in bytes."""
    return len(orjson.dumps(data))


def _cut(data: Mapping[str, Any], piece: str, room: int) -> dict[str, Any]:
    """Return the data cut to `room` bytes of text, with `truncated` set."""
    cut = {name: data[name] for name in ("step", "toolCallId", "at") if name in data}
    if isinstance(data.get(piece), str):
        cut[piece] = data[piece].encode()[:room].decode(errors="ignore")
    return cut | {"truncated": True}
