"""How many audit rows wait for a seal, and since when: for /readyz, /metrics and doctor.

Reads the rows around the head of the chain, not the whole log. `verify_audit` reads everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db import connection

from decisions.audit.chain import StoredSeal, is_our_link
from decisions.audit.incidents import ROW_REFUSED, list_open_incidents, rows_without_seal
from decisions.audit.stored import (
    LOWEST_ID,
    StoredRow,
    fetch_stored,
    moment_of,
    row_columns,
)

LATE_S = 60.0  # a row without a seal for longer can be removed unseen for too long
_END = datetime(9999, 12, 31, tzinfo=UTC)
AROUND = timedelta(minutes=2)  # before the time of the newest sealed row
_NEWEST = """
    SELECT s.position, s.entry_id, s.mac, s.prev, s.hash, {columns}
    FROM decisions_auditseal s LEFT JOIN decisions_auditentry e ON e.id = s.entry_id
    ORDER BY s.position DESC LIMIT 20
"""
_UNSEALED = """
    SELECT {columns} FROM decisions_auditentry e WHERE (e.id > %s OR e.created_at >= %s)
    AND NOT EXISTS (SELECT 1 FROM decisions_auditseal s WHERE s.entry_id = e.id) LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class UnsealedRows:
    """The rows without a seal: their number, and for how long the oldest has had none."""

    number: int
    oldest_s: float

    @property
    def is_late(self) -> bool:
        """Whether a row has had no seal for over a minute."""
        return self.number > 0 and self.oldest_s > LATE_S


def age_s(at: datetime | None, now: datetime) -> float:
    """Return how far a time is from now: a time ahead, or none, is as wrong as an old one."""
    return abs((now - at).total_seconds()) if at is not None else 2 * LATE_S


def unsealed_rows(at_most: int) -> UnsealedRows:
    """Return the backlog of the sealer, counted up to `at_most`, with the rows that it refused."""
    now = datetime.now(UTC)
    ages = {row.id: age_s(moment_of(row.created_at), now) for row in _around_head(at_most)}
    refused = {
        int(row.resource_id): age_s(moment_of(row.created_at), now)
        for row in list_open_incidents()
        if row.action == ROW_REFUSED
    }
    ages.update({row_id: refused[row_id] for row_id in rows_without_seal(list(refused))})
    return UnsealedRows(len(ages), max(ages.values(), default=0.0))


def _around_head(at_most: int) -> list[StoredRow]:
    """Return unsealed rows with a higher id than the newest sealed row, or about its time or later:
    ids can be changed in the database, times cannot.
    """
    row_id, at = _newest_sealed()
    since = connection.ops.adapt_datetimefield_value(at - AROUND)
    found = fetch_stored(_UNSEALED.format(columns=row_columns()), [row_id, since, at_most])
    return [StoredRow._make(values) for values in found]


def _newest_sealed() -> tuple[int, datetime]:
    """Return the id and the time of the newest sealed row; without one, no time is after it."""
    for values in fetch_stored(_NEWEST.format(columns=row_columns()), []):
        link = StoredSeal._make(values[:5])
        if is_our_link(*link):
            row = StoredRow._make(values[5:])
            return link.entry_id, moment_of(row.created_at) or _END
    return LOWEST_ID, _END
