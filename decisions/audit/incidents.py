"""Incidents: what the sealer could not seal or did not find, and when it could not work, as rows of
the audit log itself.

They are sealed like every row, so a person who forges a row in the database, and deletes it once it
has served its purpose, cannot delete the record of it. `verify_audit` fails until an operator
accepts them; the acceptance is a row of the audit log, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db.models import Exists, OuterRef

from decisions.audit.chain import StoredSeal, is_our_link, newest_cut
from decisions.audit.checkpoints import is_in_chain, read_checkpoints, start_anew
from decisions.audit.record import AuditEvent, record
from decisions.audit.stored import StoredRow, fault_of, fetch_stored, row_columns
from decisions.models import AuditEntry, AuditSeal

ROW_REFUSED = "audit.row_refused"
CHECKPOINTS_MISSING = "audit.checkpoints_missing"
SEALING_INTERRUPTED = "audit.sealing_interrupted"
ACCEPTED = "audit.incidents_accepted"
_INCIDENTS = (ROW_REFUSED, CHECKPOINTS_MISSING, SEALING_INTERRUPTED)
_ALL = """
    SELECT {columns} FROM decisions_auditentry e WHERE e.action IN (%s, %s, %s, %s) ORDER BY e.id
"""
_GAPS = """
    SELECT b.position, b.entry_id, b.mac, b.prev, b.hash,
           a.position, a.entry_id, a.mac, a.prev, a.hash
    FROM (SELECT position, lag(position) OVER (ORDER BY position) AS previous
          FROM decisions_auditseal WHERE position > 0) found
    JOIN decisions_auditseal b ON b.position = found.previous
    JOIN decisions_auditseal a ON a.position = found.position
    WHERE found.position > found.previous + 1 ORDER BY found.position
"""
_OF_ROW = "SELECT {columns} FROM decisions_auditentry e WHERE e.action = %s AND e.resource_id = %s"


def record_refusal(row_id: int, reason: str) -> None:
    """Record that a row is not sealed; does nothing while such an incident of its id is open."""
    opened = [row.resource_id for row in list_open_incidents() if row.action == ROW_REFUSED]
    if str(row_id) not in opened:
        _record(ROW_REFUSED, str(row_id), {"reason": reason[:200]})


def record_missing_checkpoints(position: int) -> None:
    """Record that there were no checkpoints although the chain had reached this position."""
    _record(CHECKPOINTS_MISSING, "log", {"position": position})


def record_interruption(seconds: int) -> None:
    """Record that no sealer could work for so long, until now."""
    _record(SEALING_INTERRUPTED, "log", {"seconds": seconds})


def _record(action: str, resource_id: str, details: dict[str, Any]) -> None:
    record(AuditEvent(action, "scheduler", "audit", resource_id, "", "", details))


def list_open_incidents() -> list[StoredRow]:
    """Return the incidents that no operator has accepted, oldest first."""
    found = list(_genuine(_ALL, [*_INCIDENTS, ACCEPTED]))
    accepted: set[str] = set()
    for row in found:
        if row.action == ACCEPTED:
            accepted.update(json.loads(row.metadata)["incidents"])
    return [row for row in found if row.action != ACCEPTED and row.mac not in accepted]


def list_acceptances() -> set[str]:
    """Return the MACs of all acceptances of incidents."""
    return {row.mac for row in _acceptances()}


def accepted_gaps() -> set[tuple[int, int]]:
    """Return the gaps of the chain that an operator accepted, as (first, last) missing position."""
    gaps: set[tuple[int, int]] = set()
    for details in _accepted_details():
        gaps.update((first, last) for first, last in details.get("gaps", ()))
    return gaps


def _acceptances() -> Iterator[StoredRow]:
    return _genuine(_OF_ROW, [ACCEPTED, "log"])


def _accepted_details() -> Iterator[dict[str, Any]]:
    for row in _acceptances():
        yield json.loads(row.metadata)


def list_skipped_positions() -> list[tuple[int, int]]:
    """Return the gaps of the chain that no seal was removed from, as (first, last) position.

    The sealer passes over positions that forged seals have. If these are removed later, the seal
    after the gap has the hash of the one before it, under its MAC. If the sealer had written a seal
    within the gap, the one after it would have that one's hash; unless that seal was overwritten
    while it was the newest. Then a checkpoint has it as head, or had until an operator accepted the
    loss of that head.
    """
    found = [
        (StoredSeal._make(values[:5]), StoredSeal._make(values[5:]))
        for values in fetch_stored(_GAPS, [])
    ]
    sealed = {head.position for head in read_checkpoints().heads}
    for details in _accepted_details():
        sealed.update(details.get("lostHeads", ()))
    return [
        (before.position + 1, after.position - 1)
        for before, after in found
        if is_our_link(*before)
        and is_our_link(*after)
        and after.prev == before.hash
        and not any(before.position < position < after.position for position in sealed)
    ]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What an operator accepted: open incidents, gaps of the chain, and checkpoints that new ones
    replaced; `moved_to` is None if there were none to move.
    """

    incidents: int
    gaps: int
    has_new_checkpoints: bool
    moved_to: Path | None


def accept_incidents(*, reason: str, actor: str) -> Acceptance:
    """Record that an operator accepts all open incidents and the gaps that forged seals left; then
    start new checkpoints if the present ones are incomplete or of another chain.

    The acceptance names the incidents by their MACs, so it covers no later one. It accepts no other
    fault of the log.

    Raises:
        OSError: The acceptance is recorded, but the checkpoints cannot be replaced.
    """
    accepted = [row.mac for row in list_open_incidents()]
    gaps = sorted(set(list_skipped_positions()) - accepted_gaps())
    saved = read_checkpoints()
    cut = newest_cut()
    lost = {one.head.position for one in saved.checkpoints if not is_in_chain(one, cut)}
    needs_new = bool(saved.faults or not saved.heads or lost)
    details = {
        "reason": reason,
        "incidents": accepted,
        "gaps": gaps,
        "lostHeads": sorted(lost),
        "newCheckpoints": needs_new,
    }
    record(AuditEvent(ACCEPTED, actor, "audit", "log", "", "", details))
    moved_to = start_anew() if needs_new else None
    return Acceptance(len(accepted), len(gaps), needs_new, moved_to)


def _genuine(statement: str, params: Sequence[Any]) -> Iterator[StoredRow]:
    for values in fetch_stored(statement.format(columns=row_columns()), params):
        row = StoredRow._make(values)
        if fault_of(row) is None:
            yield row


def rows_without_seal(row_ids: Sequence[int]) -> set[int]:
    """Return which of these rows exist and have no seal."""
    sealed = AuditSeal.objects.filter(entry_id=OuterRef("id"))
    rows = AuditEntry.objects.filter(id__in=row_ids).exclude(Exists(sealed))
    return set(rows.values_list("id", flat=True))
