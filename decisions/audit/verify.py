"""Verification of the whole audit log: every row, every link of the chain, every checkpoint.

Reads in batches in the order of the chain, in constant memory, without a long transaction or locks.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import repeat
from multiprocessing import get_context
from typing import NamedTuple

from django.db import connection

from decisions.audit.chain import GENESIS, ChainHead, head_of_chain, is_our_link
from decisions.audit.checkpoints import list_heads
from decisions.audit.record import canonical_forms, is_mac_of
from decisions.models import AuditSeal

BATCH_SIZE = 5000
MAX_MESSAGES = 20  # faults that are described; all are counted
_POSTGRESQL_TIME = "to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"
_SQLITE_TIME = "e.created_at || ''"  # as text: Django would parse a column
_COLUMNS = (
    "e.id, e.tenant_id, e.workspace_id, e.action, e.actor, e.resource_type, e.resource_id,"
    " e.metadata, {time}, e.mac"
)
_SEALED = """
    SELECT s.position, s.entry_id, s.mac, s.prev, s.hash, {columns}
    FROM decisions_auditseal s LEFT JOIN decisions_auditentry e ON e.id = s.entry_id
    WHERE s.position > %s AND s.position <= %s ORDER BY s.position
"""
_UNSEALED = """
    SELECT {columns}, EXISTS (SELECT 1 FROM decisions_auditseal c WHERE c.mac = e.mac)
    FROM decisions_auditentry e WHERE e.id > %s
      AND NOT EXISTS (SELECT 1 FROM decisions_auditseal s WHERE s.entry_id = e.id)
    ORDER BY e.id LIMIT %s
"""
_TWICE = (
    "SELECT mac, min(entry_id), max(entry_id) FROM decisions_auditseal"
    " GROUP BY mac HAVING count(*) > 1 LIMIT 20"
)
_OUTSIDE = "SELECT min(position) FROM decisions_auditseal WHERE position < 1"


class AuditRow(NamedTuple):
    """An audit row as the database returns it."""

    id: int
    tenant_id: str
    workspace_id: str
    action: str
    actor: str
    resource_type: str
    resource_id: str
    metadata: str
    created_at: str  # in UTC; SQLite omits a zero fraction
    mac: str


class SealRow(NamedTuple):
    """A seal as the database returns it."""

    position: int
    entry_id: int
    mac: str
    prev: str
    hash: str


@dataclass
class AuditReport:
    """The result of a verification."""

    sealed: int = 0
    unsealed: int = 0
    oldest_unsealed: datetime | None = None
    checkpoints: int = 0
    faults: int = 0
    messages: list[str] = field(default_factory=list)

    def add(self, fault: str) -> None:
        """Add a fault."""
        self.faults += 1
        if len(self.messages) < MAX_MESSAGES:
            self.messages.append(fault)

    def join(self, part: AuditReport) -> None:
        """Add the result of a part of the chain."""
        self.sealed += part.sealed
        self.faults += part.faults
        self.messages = (self.messages + part.messages)[:MAX_MESSAGES]


def check_audit_log(processes: int = 1) -> AuditReport:
    """Verify the log as it is at the start; rows added meanwhile are not checked.

    Args:
        processes: with several, each verifies a part of the chain. They are forked, so the calling
            process must have no threads.
    """
    report = AuditReport()
    try:
        saved = list_heads()
    except ValueError as unreadable:
        saved = []
        report.add(f"CONTINUITY_HOME/audit: {unreadable}")
    report.checkpoints = len(saved)
    # Read after the checkpoints: a running sealer saves no head beyond its committed chain.
    last = head_of_chain().position
    for part in _parts(_spans(last, processes), saved):
        report.join(part)
    for lost in sorted({head.position for head in saved if head.position > last}):
        report.add(f"seal {lost}: a checkpoint has it as head, but the chain ends at {last}")
    _check_unsealed(report)
    with connection.cursor() as cursor:
        cursor.execute(_TWICE)
        for _, first, second in cursor.fetchall():
            report.add(f"rows {first} and {second}: one is a copy of the other")
        cursor.execute(_OUTSIDE)
        if (outside := cursor.fetchone()[0]) is not None:
            report.add(f"seal {outside}: not a position of the chain")
    return report


def _spans(last: int, processes: int) -> list[tuple[int, int]]:
    """Split the chain's positions into contiguous parts (after, upto), one per process."""
    size = max(BATCH_SIZE, -(-last // max(1, processes)))
    return [(start, min(start + size, last)) for start in range(0, last, size)]


def _parts(spans: list[tuple[int, int]], saved: list[ChainHead]) -> Iterator[AuditReport]:
    if len(spans) < 2:
        yield from (_check_span(span, saved) for span in spans)
        return
    connection.close()  # or the child processes would share it
    with ProcessPoolExecutor(len(spans), mp_context=get_context("fork")) as pool:
        yield from pool.map(_check_span, spans, repeat(saved))


def _check_span(span: tuple[int, int], saved: list[ChainHead]) -> AuditReport:
    """Verify the links of one part of the chain, their rows and the checkpoints among them."""
    report, (position, last) = AuditReport(), span
    before = _head_at(position)
    checkpoints: dict[int, set[str]] = {}
    for head in saved:
        checkpoints.setdefault(head.position, set()).add(head.hash)
    for link, row in _links(position, last):
        if link.position != position + 1:
            report.add(_missing(position + 1, link.position - 1))
            before = None
        position, report.sealed = link.position, report.sealed + 1
        if fault := _fault_of_link(link, before, checkpoints):
            report.add(f"{_where(link)}: {fault}")
        before = ChainHead(position, link.hash)
        _check_sealed_row(report, link, row)
    if position < last:
        report.add(_missing(position + 1, last))
    return report


def _head_at(position: int) -> ChainHead | None:
    """Return the link at a position; None if it is missing, which the part that has it reports."""
    if position == 0:
        return GENESIS
    found = AuditSeal.objects.filter(position=position).values_list("hash", flat=True).first()
    return ChainHead(position, found) if found is not None else None


def _fault_of_link(
    link: SealRow, before: ChainHead | None, checkpoints: dict[int, set[str]]
) -> str | None:
    if not is_our_link(*link):
        return "the seal is not what the sealer wrote"
    if before is not None and link.prev != before.hash:
        return f"it does not follow seal {before.position}"
    if link.position in checkpoints and checkpoints[link.position] != {link.hash}:
        return "it differs from the head in a checkpoint"
    return None


def _check_sealed_row(report: AuditReport, link: SealRow, row: AuditRow | None) -> None:
    if row is None:
        report.add(f"{_where(link)}: the row was removed")
    elif not is_genuine_row(row):
        report.add(f"{_where(link)}: the row was edited{_what(row)}")
    elif row.mac != link.mac:
        report.add(f"{_where(link)}: the row was replaced by another{_what(row)}")


def _where(link: SealRow) -> str:
    return f"row {link.entry_id} (seal {link.position})"


def _check_unsealed(report: AuditReport) -> None:
    seen: dict[str, int] = {}
    for row, has_twin in _unsealed_rows():
        report.unsealed += 1
        at = moment_of(row)
        if report.oldest_unsealed is None or (at is not None and at < report.oldest_unsealed):
            report.oldest_unsealed = at
        if not is_genuine_row(row):
            report.add(f"row {row.id} (not sealed): not written by Continuity{_what(row)}")
        elif has_twin or row.mac in seen:
            report.add(f"row {row.id} (not sealed): it is a copy of another row{_what(row)}")
        if len(seen) < BATCH_SIZE:
            seen[row.mac] = row.id


def is_genuine_row(row: AuditRow) -> bool:
    """Tell whether a row, as the database returns it, is unchanged since `record` wrote it."""
    try:
        at = iso(row.created_at)
        for form in canonical_forms(*row[1:7], metadata=row.metadata, created_at=at):
            if is_mac_of(form, row.mac):
                return True
    except (ValueError, TypeError, ArithmeticError):
        pass
    return False


def iso(at: str) -> str:
    """Convert a time as the database returns it to the form that the MAC covers."""
    text = f"{at[:10]}T{at[11:]}"
    return f"{text}+00:00" if len(text) == 26 else f"{text}.000000+00:00"


def moment_of(row: AuditRow) -> datetime | None:
    """Return a row's time of creation; None if the column is not a time."""
    try:
        return datetime.fromisoformat(iso(row.created_at))
    except (ValueError, TypeError):
        return None


def _statement(text: str) -> str:
    time = _POSTGRESQL_TIME if connection.vendor == "postgresql" else _SQLITE_TIME
    return text.format(columns=_COLUMNS.format(time=time))


def _links(after: int, last: int) -> Iterator[tuple[SealRow, AuditRow | None]]:
    for start in range(after, last, BATCH_SIZE):
        with connection.cursor() as cursor:
            cursor.execute(_statement(_SEALED), [start, min(start + BATCH_SIZE, last)])
            found = cursor.fetchall()
        for values in found:
            yield (
                SealRow._make(values[:5]),
                None if values[5] is None else AuditRow._make(values[5:]),
            )


def _unsealed_rows() -> Iterator[tuple[AuditRow, bool]]:
    after = -(2**62)
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_statement(_UNSEALED), [after, BATCH_SIZE])
            found = cursor.fetchall()
        for values in found:
            yield AuditRow._make(values[:10]), bool(values[10])
        if len(found) < BATCH_SIZE:
            return
        after = found[-1][0]


def _missing(first: int, last: int) -> str:
    if first == last:
        return f"seal {first}: it is missing from the chain"
    return f"seals {first} to {last}: they are missing from the chain"


def _what(row: AuditRow) -> str:
    return f": {row.action} {row.resource_type} {row.resource_id} by {row.actor}"
