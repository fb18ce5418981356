"""What a run's steps tell and its log does not have yet: in order, and little of it at a time
(mechanisms 4).

A model's words and a tool's updates come by the hundred a second. The first is written at once;
those that follow wait for 100 ms or 1 KiB, and the pieces of one text become one event. A run keeps
MAX_STREAMED_BYTES of them; the last that is kept says that there was more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from decisions.validation.storable import storable
from runs.events.types import PIECES
from runs.lifecycle.changes import NewEvent
from runs.models import RunEvent

JOIN_FOR_S = 0.1
JOIN_BYTES = 1024
MAX_STREAMED_BYTES = 1024 * 1024  # of a run, as JSON
MANY = 256  # events that wait: time to write, whatever else there is to hear


@dataclass(slots=True)
class _Waiting:
    type: str
    data: dict[str, Any]
    size: int = 0  # of its text, in bytes

    def joins(self, later: _Waiting, piece: str) -> bool:
        """Append a later event's text, if both are pieces of one."""
        texts = self.data.get(piece), later.data.get(piece)
        if self.type != later.type or not all(isinstance(text, str) for text in texts):
            return False
        ours, theirs = ({**one.data, piece: "", "at": 0} for one in (self, later))
        if ours != theirs or self.size + later.size > JOIN_BYTES:
            return False
        self.data[piece] += later.data[piece]
        self.size += later.size
        return True


class EventBuffer:
    """Of one lease of one run; used on the run's thread alone.

    Args:
        mask: takes secrets out of an event.
        told_before: how many bytes of such events the run's log has; asked once, with the first.
    """

    def __init__(
        self, mask: Callable[[NewEvent], NewEvent], told_before: Callable[[], int]
    ) -> None:
        self._mask, self._told_before = mask, told_before
        self._told: int | None = None
        self._waiting: list[_Waiting] = []
        # By step and call: what the next piece of it may join.
        self._last: dict[str, dict[str, _Waiting]] = {}
        self._due_at = math.inf
        self._size = 0
        self._written_at = -math.inf

    def add(self, event: NewEvent) -> None:
        """Take what a step tells."""
        one = _Waiting(event.type, storable(self._mask(event).data))
        if event.type in PIECES:
            self._add_piece(one, PIECES[event.type])
            return
        self._waiting.append(one)
        self._last.clear()  # nothing is joined across it
        self._due_at = -math.inf

    def events(self) -> list[NewEvent]:
        """Return what waits, in order."""
        # Masked again: a joined text may hold what none of its pieces did.
        return [self._mask(NewEvent(one.type, one.data)) for one in self._waiting]

    def forget(self) -> None:
        """Let go of what waited: it is written."""
        if self._size:
            self._written_at = time.monotonic()
        self._waiting, self._last = [], {}
        self._due_at, self._size = math.inf, 0

    def due_in(self) -> float:
        """Return the seconds until something is to be written; infinity when nothing waits."""
        return max(0.0, self._due_at - time.monotonic())

    @property
    def is_due(self) -> bool:
        """Whether something is to be written now."""
        return self.due_in() == 0.0

    @property
    def are_many(self) -> bool:
        """Whether they are to be written before more is heard."""
        return len(self._waiting) >= MANY

    def _add_piece(self, one: _Waiting, piece: str) -> None:
        if self._told is None:
            self._told = self._told_before()
        if self._told >= MAX_STREAMED_BYTES:
            return
        size = size_of(one.data)
        if self._told + size > MAX_STREAMED_BYTES:
            one.data = _cut(one.data, piece, MAX_STREAMED_BYTES - self._told)
            size = MAX_STREAMED_BYTES
        text = one.data.get(piece)
        one.size = len(text.encode()) if isinstance(text, str) else 0
        calls = self._last.setdefault(str(one.data.get("step")), {})
        if any(last.type != one.type for last in calls.values()):
            calls.clear()  # what a model says after a tool's update stays after it
        call = str(one.data.get("toolCallId"))
        if call in calls and calls[call].joins(one, piece):
            size = one.size
        else:
            self._waiting.append(one)
            calls[call] = one
        self._told += size
        self._size += size
        self._due_at = min(self._due_at, self._written_at + JOIN_FOR_S)
        if self._size >= JOIN_BYTES:
            self._due_at = -math.inf


def stored_bytes(run_id: str) -> int:
    """Return how much the run's log has of what is joined and capped; where it was cut, all."""
    rows = RunEvent.objects.filter(run_id=run_id, type__in=PIECES)
    told: list[Mapping[str, Any]] = list(rows.values_list("data", flat=True))
    if any("truncated" in data for data in told):
        return MAX_STREAMED_BYTES
    return sum(map(size_of, told))


def size_of(data: Mapping[str, Any]) -> int:
    """Return the bytes of an event's data."""
    return len(orjson.dumps(data))


def _cut(data: Mapping[str, Any], piece: str, room: int) -> dict[str, Any]:
    """Return what there is room for, and say that it is not all."""
    kept = {name: data[name] for name in ("step", "toolCallId", "at") if name in data}
    if isinstance(data.get(piece), str):
        kept[piece] = data[piece].encode()[:room].decode(errors="ignore")
    return kept | {"truncated": True}
