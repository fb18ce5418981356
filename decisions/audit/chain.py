"""The hash chain beside the audit log: how a link is made and checked (mechanisms 14).

A link's hash is a MAC over the link before it, its position, and the id and MAC of its entry, under
a key kept outside the database: whoever owns the database alone can neither make a link nor mend
the chain behind a row that he took out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from decisions.models import AuditSeal
from decisions.security.keys import mac, mac_matches

_PURPOSE = "audit-seal"


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The last link of a chain, or of a part of it."""

    position: int
    hash: str


GENESIS = ChainHead(0, "0" * 64)


def _message(prev: str, position: int, entry_id: int, entry_mac: str) -> bytes:
    return f"{prev}:{position}:{entry_id}:{entry_mac}".encode()


def seals_after(head: ChainHead, entries: Iterable[tuple[int, str]]) -> list[AuditSeal]:
    """Return the unsaved links of these entries, each (id, mac), in order behind `head`."""
    made = []
    for entry_id, entry_mac in entries:
        position = head.position + 1
        hashed = mac(_PURPOSE, _message(head.hash, position, entry_id, entry_mac))
        made.append(
            AuditSeal(
                position=position, entry_id=entry_id, mac=entry_mac, prev=head.hash, hash=hashed
            )
        )
        head = ChainHead(position, hashed)
    return made


def is_our_link(position: int, entry_id: int, entry_mac: str, prev: str, hashed: str) -> bool:
    """Tell whether our sealer made this link, exactly as it stands."""
    return mac_matches(_PURPOSE, _message(prev, position, entry_id, entry_mac), hashed)


def head_of_chain() -> ChainHead:
    """Return the chain's last link; BEFORE_ALL where nothing was sealed yet."""
    last = AuditSeal.objects.order_by("-position").values_list("position", "hash").first()
    return ChainHead(*last) if last else GENESIS
