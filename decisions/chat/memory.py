"""The signatures of users' past events, kept in this process so that each is read once.

Events are only added, and a user's only under the lock of that user: what was read stays true, and
what is new has a higher id. The database is the truth; a process that starts reads it again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field

from decisions.models import Event
from decisions.owner import Owner

USERS = 32  # whose past is kept; of ten thousand events about 2 MB
GRAVE = "L4"


@dataclass(slots=True)
class Remembered:
    """A user's past events, the oldest first: ids and signatures, and which of them are L4."""

    ids: list[int] = field(default_factory=list)
    signatures: list[int] = field(default_factory=list)
    grave: set[int] = field(default_factory=set)

    def catch_up(self, owner: Owner) -> None:
        """Read what came since. The caller has locked the user."""
        rows = Event.objects.filter(
            workspace_id=owner.workspace_id, user_id=owner.user_id,
            pk__gt=self.ids[-1] if self.ids else 0,
        ).order_by("pk").values_list("pk", "signature", "layer")  # fmt: skip
        for number, signature, layer in rows.iterator(2000):
            self.ids.append(number)
            self.signatures.append(int.from_bytes(signature, "little"))
            if layer == GRAVE:
                self.grave.add(number)


_lock = threading.Lock()
_kept: OrderedDict[tuple[str, str], Remembered] = OrderedDict()


def past_of(owner: Owner) -> Remembered:
    """Return a user's past as it is now. The caller has locked the user."""
    whose = owner.workspace_id, owner.user_id
    with _lock:
        found = _kept.setdefault(whose, Remembered())
        _kept.move_to_end(whose)
        if len(_kept) > USERS:
            _kept.popitem(last=False)
    found.catch_up(owner)
    return found
