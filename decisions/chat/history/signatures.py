"""The signatures of users' past events, kept in this process so that each is read once.

Events are only added, and a user's only under the lock of that user: whoever reads them without it
reads all up to some id, and what is new has a higher one. The database is the truth; a process that
starts reads it again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from heapq import nsmallest

from decisions.chat.history.similarity import near_ones
from decisions.continuity.owner import Owner
from decisions.models import Event

USERS = 32  # whose past is kept; of ten thousand events about 2 MB
GRAVE = "L4"
_AT_ONCE = 2000  # rows that are read in one statement


@dataclass(frozen=True, slots=True)
class NearEvents:
    """The events that may be like a message.

    Attributes:
        ids: the most similar first.
        grave: those of them that are L4, in the same order.
        last_id: of the user's events, the newest that was looked at; 0 where there is none.
    """

    ids: list[int]
    grave: list[int]
    last_id: int


@dataclass(slots=True)
class UserSignatures:
    """A user's past events, the oldest first: ids and signatures, and which of them are L4."""

    ids: list[int] = field(default_factory=list)
    signatures: list[int] = field(default_factory=list)
    grave: set[int] = field(default_factory=set)
    _one_reads: threading.Lock = field(default_factory=threading.Lock)

    def near(self, owner: Owner, wanted: bytes, *, at_least: float, most: int) -> NearEvents:
        """Read what came since, and return what a signature is near to: at most so many of all, and
        of those that are L4.
        """
        with self._one_reads:
            self._catch_up(owner)
            found = near_ones(wanted, self.ids, self.signatures, at_least=at_least)
            grave = (one for one in found if one[1] in self.grave)
            return NearEvents(
                ids=[number for _, number in nsmallest(most, found)],
                grave=[number for _, number in nsmallest(most, grave)],
                last_id=self.ids[-1] if self.ids else 0,
            )

    def _catch_up(self, owner: Owner) -> None:
        mine = Event.objects.filter(workspace_id=owner.workspace_id, user_id=owner.user_id)
        rows = mine.order_by("pk").values_list("pk", "signature", "layer")
        more = True
        # In portions rather than through a server's cursor, which is three statements for the few
        # rows that there are to read.
        while more:
            some = rows.filter(pk__gt=self.ids[-1] if self.ids else 0)[:_AT_ONCE]
            for number, signature, layer in some:
                self.ids.append(number)
                self.signatures.append(int.from_bytes(signature, "little"))
                if layer == GRAVE:
                    self.grave.add(number)
            more = len(some) == _AT_ONCE


_lock = threading.Lock()
_kept: OrderedDict[tuple[str, str], UserSignatures] = OrderedDict()


def signatures_of(owner: Owner) -> UserSignatures:
    """Return what this process remembers of a user, whatever came since. Any thread may ask."""
    whose = owner.workspace_id, owner.user_id
    with _lock:
        found = _kept.setdefault(whose, UserSignatures())
        _kept.move_to_end(whose)
        if len(_kept) > USERS:
            _kept.popitem(last=False)
    return found
