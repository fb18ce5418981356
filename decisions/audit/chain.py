"""The hash chain of the audit log: creating and checking its links (seals).

A link's hash is a MAC over the previous link's hash, its position, and the id and MAC of its entry,
under a key outside the database. Someone with access to the database alone can neither create a
link nor repair the chain after removing a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from decisions.models import AuditSeal
from decisions.security.keys import mac, mac_matches

_PURPOSE = "audit-seal"


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The last link of the chain, or of a part of it."""

    position: int
    hash: str


GENESIS = ChainHead(0, "0" * 64)


def _message(prev: str, position: int, entry_id: int, entry_mac: str) -> bytes:
    return f"{prev}:{position}:{entry_id}:{entry_mac}".encode()


def seals_after(head: ChainHead, entries: Iterable[tuple[int, str]]) -> list[AuditSeal]:
    """Return the unsaved links of these entries, given as (id, mac), in order after `head`."""
    seals = []
    for entry_id, entry_mac in entries:
        position = head.position + 1
        hashed = mac(_PURPOSE, _message(head.hash, position, entry_id, entry_mac))
        seals.append(
            AuditSeal(
                position=position, entry_id=entry_id, mac=entry_mac, prev=head.hash, hash=hashed
            )
        )
        head = ChainHead(position, hashed)
    return seals


def is_our_link(position: int, entry_id: int, entry_mac: str, prev: str, hashed: str) -> bool:
    """Tell whether the sealer wrote this link with exactly these values."""
    return mac_matches(_PURPOSE, _message(prev, position, entry_id, entry_mac), hashed)


def head_of_chain() -> ChainHead:
    """Return the chain's last link; GENESIS if nothing is sealed yet."""
    last = AuditSeal.objects.order_by("-position").values_list("position", "hash").first()
    return ChainHead(*last) if last else GENESIS
