"""The hash chain of the audit log: creating and checking its links (seals).

A link's hash is a MAC over the previous link's hash, its position, and the id and MAC of its entry,
under a key outside the database. Someone with access to the database alone can neither create a
link nor repair the chain after removing a row. Rows of the table that are not links of ours do not
count: neither as the head of the chain, nor as the seal of an audit row.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any, NamedTuple

from decisions.audit.stored import StoredRow, fault_of, fetch_stored, row_columns
from decisions.foundation.security.keys import mac, mac_matches
from decisions.models import AuditSeal

ARCHIVED = "audit.archived"  # the action of a row that records a cut
_PURPOSE = "audit-seal"
_PAGE = 100
_BEFORE = """
    SELECT position, entry_id, mac, prev, hash FROM decisions_auditseal
    WHERE position <= %s ORDER BY position DESC LIMIT %s
"""
_CUTS = """
    SELECT {columns}, s.position, s.entry_id, s.mac, s.prev, s.hash
    FROM decisions_auditentry e LEFT JOIN decisions_auditseal s ON s.entry_id = e.id
    WHERE e.action = %s
"""


@dataclass(frozen=True, slots=True)
class ChainHead:
    """The last link of the chain, or of a part of it."""

    position: int
    hash: str


class StoredSeal(NamedTuple):
    """A seal as the database returns it; one that Continuity did not write can have any content."""

    position: int
    entry_id: int
    mac: str
    prev: str
    hash: str

    @property
    def head(self) -> ChainHead:
        """The head of the chain up to this seal."""
        return ChainHead(self.position, self.hash)


GENESIS = ChainHead(0, "0" * 64)


def audit_record(
    fields: dict[str, Any], at: str | None, entry_mac: str, seal: StoredSeal | AuditSeal | None
) -> dict[str, Any]:
    """Return a row as a record of a bundle.

    Args:
        fields: as `fields_of`.
        at: when it was created, ISO 8601; None if its time is unreadable.
        seal: None while it is not sealed.
    """
    link = seal and {"position": seal.position, "prev": seal.prev, "hash": seal.hash}
    return {"type": "audit", **fields, "createdAt": at, "mac": entry_mac, "seal": link}


def _message(prev: str, position: int, entry_id: int, entry_mac: str) -> bytes:
    return f"{prev}:{position}:{entry_id}:{entry_mac}".encode("utf-8", "surrogateescape")


def seals_after(
    head: ChainHead, entries: Iterable[tuple[int, str]], *, occupied: Iterable[int] = ()
) -> list[AuditSeal]:
    """Return the unsaved links of these entries, given as (id, mac), in order after `head`.

    Args:
        occupied: positions that forged seals have; they are left out.
    """
    seals, taken = [], set(occupied)
    positions = (number for number in count(head.position + 1) if number not in taken)
    for (entry_id, entry_mac), position in zip(entries, positions, strict=False):
        hashed = mac(_PURPOSE, _message(head.hash, position, entry_id, entry_mac))
        seals.append(
            AuditSeal(
                position=position, entry_id=entry_id, mac=entry_mac, prev=head.hash, hash=hashed
            )
        )
        head = ChainHead(position, hashed)
    return seals


def is_our_link(position: Any, entry_id: Any, entry_mac: Any, prev: Any, hashed: Any) -> bool:
    """Return whether the sealer wrote this link with exactly these values."""
    return isinstance(hashed, str) and mac_matches(
        _PURPOSE, _message(prev, position, entry_id, entry_mac), hashed
    )


def is_seal_of(seal: StoredSeal, row: StoredRow) -> bool:
    """Return whether the sealer wrote this seal for this row, which it has the id of."""
    return seal.mac == row.mac and is_our_link(*seal)


def newest_links(upto: int = 2**63 - 1) -> Iterator[StoredSeal]:
    """Yield the links that the sealer wrote, from this position downwards."""
    while True:
        found = [StoredSeal._make(values) for values in fetch_stored(_BEFORE, [upto, _PAGE])]
        yield from (link for link in found if is_our_link(*link))
        if len(found) < _PAGE or found[-1].position == -(2**63):
            return
        upto = found[-1].position - 1


def head_of_chain(upto: int = 2**63 - 1) -> ChainHead:
    """Return the last link that the sealer wrote, up to a position; GENESIS if there is none."""
    newest = next(newest_links(upto), None)
    return newest.head if newest else GENESIS


@dataclass(frozen=True, slots=True)
class Cut:
    """A row that `archive_audit` recorded: up to which head it removed the chain.

    Attributes:
        counts: whether the chain went on from this head to the seal of the row. The row of a cut
            that a restore undid, inserted again, has no such seal.
    """

    row: StoredRow
    head: ChainHead
    counts: bool

    @property
    def made_at(self) -> datetime:
        """Return when the archive was made, by the clock of `archive_audit`."""
        return datetime.fromisoformat(self.row.created_at).replace(tzinfo=UTC)


def list_cuts() -> list[Cut]:
    """Return the cuts whose rows Continuity wrote."""
    width, cuts = len(StoredRow._fields), []
    for values in fetch_stored(_CUTS.format(columns=row_columns()), [ARCHIVED]):
        row, seal = StoredRow._make(values[:width]), StoredSeal._make(values[width:])
        if fault_of(row) is None:
            head = _cut_of(row)
            counts = is_seal_of(seal, row) and head.position < seal.position
            cuts.append(Cut(row, head, counts))
    return cuts


def _cut_of(row: StoredRow) -> ChainHead:
    details = json.loads(row.metadata)
    return ChainHead(details["position"], details["hash"])


def start_of_chain() -> ChainHead:
    """Return the link after which the chain in the database begins: the one up to which
    `archive_audit` removed it, recorded as a row of the log; GENESIS if it never did.
    """
    cut = newest_cut()
    return cut.head if cut else GENESIS


def newest_cut() -> Cut | None:
    """Return the cut at which the chain in the database begins; None if there is none."""
    cuts = [cut for cut in list_cuts() if cut.counts]
    return max(cuts, key=lambda cut: cut.head.position, default=None)


def fault_of_cut(row: StoredRow) -> str | None:
    """Return why a row without a seal records a cut of another chain; None if it does not."""
    if row.action != ARCHIVED:
        return None
    cut = _cut_of(row)
    if cut in (head_of_chain(upto=cut.position), start_of_chain()):
        return None
    return f"it records an archive up to seal {cut.position}, which this chain does not have"
