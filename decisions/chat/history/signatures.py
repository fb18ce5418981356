"""A cache of the signatures of users' past events, so that a process reads each event once.

Events are append-only, and a user's events are written under that user's lock. A read without the
lock therefore sees all events up to some id, and newer ones have higher ids.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from heapq import nsmallest

from decisions.chat.history.similarity import near_ones
from decisions.memory.owner import Owner
from decisions.models import Event

MAX_USERS = 32  # in the cache; ten thousand events take about 2 MB
GRAVE = "L4"
_BATCH_SIZE = 2000  # rows per query


@dataclass(frozen=True, slots=True)
class NearEvents:
    """The events that may be similar to a message.

    Attributes:
        ids: the most similar first.
        grave: the L4 events among all similar ones, the most similar first.
        last_id: the newest event of the user in the cache, or 0.
    """

    ids: list[int]
    grave: list[int]
    last_id: int


@dataclass(slots=True)
class UserSignatures:
    """A user's past events, oldest first: ids, signatures, and the ids of L4 events."""

    ids: list[int] = field(default_factory=list)
    signatures: list[int] = field(default_factory=list)
    grave: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def near(self, owner: Owner, wanted: bytes, *, at_least: float, most: int) -> NearEvents:
        """Read newer events, then return the events near a signature: at most `most` of all, and
        at most `most` of L4.
        """
        with self._lock:
            self._catch_up(owner)
            found = near_ones(wanted, self.ids, self.signatures, at_least=at_least)
            grave = (one for one in found if one[1] in self.grave)
            return NearEvents(
                ids=[number for _, number in nsmallest(most, found)],
                grave=[number for _, number in nsmallest(most, grave)],
                last_id=self.ids[-1] if self.ids else 0,
            )

    def _catch_up(self, owner: Owner) -> None:
        events = Event.objects.filter(workspace_id=owner.workspace_id, user_id=owner.user_id)
        rows = events.order_by("pk").values_list("pk", "signature", "layer")
        has_more = True
        # In batches rather than with a server-side cursor, which takes three statements for the
        # usually few new rows.
        while has_more:
            batch = rows.filter(pk__gt=self.ids[-1] if self.ids else 0)[:_BATCH_SIZE]
            for number, signature, layer in batch:
                self.ids.append(number)
                self.signatures.append(int.from_bytes(signature, "little"))
                if layer == GRAVE:
                    self.grave.add(number)
            has_more = len(batch) == _BATCH_SIZE


_cache_lock = threading.Lock()
_cache: OrderedDict[tuple[str, str], UserSignatures] = OrderedDict()


def signatures_of(owner: Owner) -> UserSignatures:
    """Return the cached signatures of a user, which may lack newer events. Safe for threads."""
    key = owner.workspace_id, owner.user_id
    with _cache_lock:
        found = _cache.setdefault(key, UserSignatures())
        _cache.move_to_end(key)
        if len(_cache) > MAX_USERS:
            _cache.popitem(last=False)
    return found
