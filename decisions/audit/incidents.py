"""Incidents: what the sealer could not seal or did not find, as rows of the audit log itself.

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

from decisions.audit.chain import head_of_chain, start_of_chain
from decisions.audit.checkpoints import is_in_chain, read_checkpoints, start_anew
from decisions.audit.record import AuditEvent, record
from decisions.audit.stored import StoredRow, fault_of, fetch_stored, row_columns
from decisions.models import AuditEntry, AuditSeal

ROW_REFUSED = "audit.row_refused"
CHECKPOINTS_MISSING = "audit.checkpoints_missing"
ACCEPTED = "audit.incidents_accepted"
_ALL = """
    SELECT {columns} FROM decisions_auditentry e WHERE e.action IN (%s, %s, %s) ORDER BY e.id
"""
_OF_ROW = "SELECT {columns} FROM decisions_auditentry e WHERE e.action = %s AND e.resource_id = %s"


def record_refusal(row_id: int, reason: str) -> None:
    """Record that a row is not sealed, once: later calls for the same row do nothing."""
    recorded = _genuine(_OF_ROW, [ROW_REFUSED, str(row_id)])
    if not any(recorded):
        details = {"reason": reason[:200]}
        record(AuditEvent(ROW_REFUSED, "scheduler", "audit", str(row_id), "", "", details))


def record_missing_checkpoints(position: int) -> None:
    """Record that there were no checkpoints although the chain had reached this position."""
    details = {"position": position}
    record(AuditEvent(CHECKPOINTS_MISSING, "scheduler", "audit", "log", "", "", details))


def list_open_incidents() -> list[StoredRow]:
    """Return the incidents that nobody has accepted, oldest first."""
    found = list(_genuine(_ALL, [ROW_REFUSED, CHECKPOINTS_MISSING, ACCEPTED]))
    accepted: set[str] = set()
    for row in found:
        if row.action == ACCEPTED:
            accepted.update(json.loads(row.metadata)["incidents"])
    return [row for row in found if row.action != ACCEPTED and row.mac not in accepted]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What an operator accepted: open incidents, and checkpoints that were moved aside."""

    incidents: int
    moved_to: Path | None


def accept_incidents(*, reason: str, actor: str) -> Acceptance:
    """Record that an operator accepts all open incidents, and start new checkpoints if the present
    ones are incomplete or of another chain.

    The acceptance names the incidents by their MACs, so it covers no later one. It accepts no other
    fault of the log.
    """
    accepted = [row.mac for row in list_open_incidents()]
    saved, start = read_checkpoints(), start_of_chain()
    moved_to = None
    known = (head.position < start.position or is_in_chain(head) for head in saved.heads)
    if saved.faults or not saved.heads or not all(known):
        moved_to = start_anew(head_of_chain())
    details = {"reason": reason, "incidents": accepted, "newCheckpoints": moved_to is not None}
    record(AuditEvent(ACCEPTED, actor, "audit", "log", "", "", details))
    return Acceptance(len(accepted), moved_to)


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
