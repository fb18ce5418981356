"""Verification of the whole audit log: every row, link, checkpoint, and the tables' triggers.

Reads in batches in the order of the chain, in constant memory, without a long transaction or locks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import repeat
from multiprocessing import get_context

from django.db import connection

from decisions.audit.backlog import LATE_S, age_s
from decisions.audit.chain import (
    ChainHead,
    StoredSeal,
    fault_of_cut,
    head_of_chain,
    is_our_link,
    list_cuts,
    newest_cut,
    start_of_chain,
)
from decisions.audit.checkpoints import Checkpoint, is_in_chain, read_checkpoints
from decisions.audit.incidents import (
    CHECKPOINTS_MISSING,
    SEALING_INTERRUPTED,
    accepted_gaps,
    list_open_incidents,
    list_skipped_positions,
    rows_without_seal,
)
from decisions.audit.stored import (
    HIGHEST_ID,
    LOWEST_ID,
    StoredRow,
    fault_of,
    fetch_stored,
    id_after,
    moment_of,
    row_columns,
)
from decisions.audit.verify_bundle import MAX_MESSAGES, Faults
from decisions.models import AuditSeal
from decisions.models.audit_triggers import changed_triggers

BATCH_SIZE = 5000
_SEALED = """
    SELECT s.position, s.entry_id, s.mac, s.prev, s.hash, {columns}
    FROM decisions_auditseal s LEFT JOIN decisions_auditentry e ON e.id = s.entry_id
    WHERE s.position >= %s AND s.position <= %s ORDER BY s.position LIMIT %s
"""
_UNSEALED = """
    SELECT {columns}, EXISTS (SELECT 1 FROM decisions_auditseal c WHERE c.mac = e.mac)
    FROM decisions_auditentry e WHERE e.id >= %s
      AND NOT EXISTS (SELECT 1 FROM decisions_auditseal s WHERE s.entry_id = e.id)
    ORDER BY e.id LIMIT %s
"""
_TWICE = (
    "SELECT mac, min(entry_id), max(entry_id) FROM decisions_auditseal"
    " GROUP BY mac HAVING count(*) > 1 LIMIT 20"
)
_EXISTS = "SELECT 1 FROM decisions_auditentry WHERE id = %s"


@dataclass
class AuditReport(Faults):
    """The result of a verification."""

    sealed: int = 0
    unsealed: int = 0
    oldest_unsealed_s: float = 0.0
    checkpoints: int = 0
    archived: int = 0

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
    saved = read_checkpoints()
    report.checkpoints = len(saved.heads)
    for fault in saved.faults:
        report.add(f"CONTINUITY_HOME/audit: {fault}")
    # Read after the checkpoints: a running sealer saves no head beyond its committed chain.
    last = head_of_chain().position
    if last and not saved.heads and not saved.faults:
        report.add(
            "CONTINUITY_HOME/audit has no checkpoint: they were deleted, or this is not the home of"
            " a scheduler"
        )
    start = start_of_chain()
    gaps = accepted_gaps()
    gaps = gaps.intersection(list_skipped_positions()) if gaps else gaps
    for part in _parts(_spans(start.position, last, processes), [start, *saved.heads], gaps):
        report.join(part)
    _check_start(report, start, saved.checkpoints)
    for lost in sorted({head.position for head in saved.heads if head.position > last}):
        report.add(f"seal {lost}: a checkpoint has it as head, but the chain ends at {last}")
    _check_unsealed(report)
    for _, first, second in fetch_stored(_TWICE, []):
        report.add(f"rows {first} and {second}: one is a copy of the other")
    _check_outside(report, last)
    _check_incidents(report)
    for change in changed_triggers():
        report.add(change)
    return report


def _spans(start: int, last: int, processes: int) -> list[tuple[int, int]]:
    """Split the chain's positions into contiguous parts (after, upto), one per process."""
    size = max(BATCH_SIZE, -(-(last - start) // max(1, processes)))
    return [(first, min(first + size, last)) for first in range(start, last, size)]


def _parts(
    spans: list[tuple[int, int]], saved: list[ChainHead], gaps: set[tuple[int, int]]
) -> Iterator[AuditReport]:
    if len(spans) < 2:
        yield from (_check_span(span, saved, gaps) for span in spans)
        return
    connection.close()  # or the child processes would share it
    with ProcessPoolExecutor(len(spans), mp_context=get_context("fork")) as pool:
        yield from pool.map(_check_span, spans, repeat(saved), repeat(gaps))


def _check_span(
    span: tuple[int, int], saved: list[ChainHead], gaps: set[tuple[int, int]]
) -> AuditReport:
    """Verify the links of one part of the chain, their rows and the checkpoints among them.

    Args:
        saved: the start of the chain, then the heads of the checkpoints.
        gaps: missing positions that are no fault, as (first, last).
    """
    report, (position, last) = AuditReport(), span
    before = _hashes_before(position, saved[0])
    checkpoints: dict[int, set[str]] = {}
    for head in saved:
        checkpoints.setdefault(head.position, set()).add(head.hash)
    for link, row in sealed_rows(position + 1, last):
        if link.position != position + 1 and not _is_within(gaps, position + 1, link.position - 1):
            report.add(_missing(position + 1, link.position - 1))
            before = set()
        position, report.sealed = link.position, report.sealed + 1
        if fault := _fault_of_link(link, before, checkpoints):
            report.add(f"{_where(link)}: {fault}")
        # The link after a forged one may follow it, or the link that was there before.
        before = {link.hash} if is_our_link(*link) else before | {link.hash}
        _check_sealed_row(report, link, row)
    if position < last and not _is_within(gaps, position + 1, last):
        report.add(_missing(position + 1, last))
    return report


def _is_within(gaps: set[tuple[int, int]], first: int, last: int) -> bool:
    """Return whether these missing positions are an accepted gap, or the part of it in one span."""
    return any(start <= first and last <= end for start, end in gaps)


def _hashes_before(position: int, start: ChainHead) -> set[str]:
    """Return the hashes that the link after this position may follow; none if the link at the
    position is missing, which the part that has it reports.
    """
    if position == start.position:
        return {start.hash}
    found = AuditSeal.objects.filter(position=position).values_list("hash", flat=True).first()
    return set() if found is None else {found, head_of_chain(upto=position).hash}


def _fault_of_link(
    link: StoredSeal, before: set[str], checkpoints: dict[int, set[str]]
) -> str | None:
    if not is_our_link(*link):
        return "the seal is not what the sealer wrote"
    if before and link.prev not in before:
        return f"it does not follow seal {link.position - 1}"
    if link.position in checkpoints and checkpoints[link.position] != {link.hash}:
        return "it differs from the head in a checkpoint"
    return None


def _check_sealed_row(report: AuditReport, link: StoredSeal, row: StoredRow | None) -> None:
    if row is None:
        report.add(f"{_where(link)}: the row was removed")
    elif fault := fault_of(row):
        report.add(f"{_where(link)}: the row was edited ({fault}): {row}")
    elif row.mac != link.mac:
        report.add(f"{_where(link)}: the row was replaced by another: {row}")


def _where(link: StoredSeal) -> str:
    return f"row {link.entry_id} (seal {link.position})"


def _check_unsealed(report: AuditReport) -> None:
    seen: dict[str, int] = {}
    late, now = 0, datetime.now(UTC)
    for row, has_twin in _unsealed_rows():
        report.unsealed += 1
        waits_s = age_s(moment_of(row.created_at), now)
        report.oldest_unsealed_s = max(report.oldest_unsealed_s, waits_s)
        if fault := fault_of(row):
            report.add(f"row {row.id} (not sealed): not written by Continuity ({fault}): {row}")
        elif has_twin or row.mac in seen:
            report.add(f"row {row.id} (not sealed): it is a copy of another row: {row}")
        else:
            late += waits_s > LATE_S
        if len(seen) < BATCH_SIZE:
            seen[row.mac] = row.id
    if late:
        report.add(
            f"{late} rows are over a minute old and not sealed, so they can be removed without a"
            " trace: check that a scheduler runs, and the clocks of its machine and the others"
        )


def _check_start(report: AuditReport, start: ChainHead, saved: list[Checkpoint]) -> None:
    """Check the archived rows that are still here, and that the cut is what checkpoints have."""
    for link, row in sealed_rows(1, start.position):
        report.archived += 1
        if not is_our_link(*link):
            report.add(f"{_where(link)}: the seal is not what the sealer wrote")
        _check_sealed_row(report, link, row)
    before = [one for one in saved if one.head.position <= start.position]
    cut = newest_cut()
    for position in sorted({one.head.position for one in before if not is_in_chain(one, cut)}):
        report.add(f"seal {position}: the archived chain differs from a checkpoint")
    for cut in list_cuts():
        if not cut.counts and (fault := fault_of_cut(cut.row)):
            report.add(f"row {cut.row.id}: {fault}: {cut.row}")


def _check_outside(report: AuditReport, last: int) -> None:
    """Find seals before the first position, and forged ones beyond the end of the chain."""
    for link, _ in sealed_rows(LOWEST_ID, 0):
        report.add(f"seal {link.position}: not a position of the chain")
    for link, row in sealed_rows(last + 1, HIGHEST_ID):
        if not is_our_link(*link):  # the others were added since
            report.add(f"{_where(link)}: the seal is not what the sealer wrote")
            _check_sealed_row(report, link, row)


def _check_incidents(report: AuditReport) -> None:
    """Report what the sealer recorded and no operator has accepted, except refused rows that are
    still without a seal: `_check_unsealed` reports these.
    """
    for row in list_open_incidents():
        details = json.loads(row.metadata)
        if row.action == CHECKPOINTS_MISSING:
            report.add(
                f"row {row.id}: the checkpoints were missing when seal {details['position']} was"
                f" the newest, at {row.created_at}"
            )
        elif row.action == SEALING_INTERRUPTED:
            report.add(
                f"row {row.id}: no row was sealed for {details['seconds']} s until"
                f" {row.created_at}, so a row could be removed without a trace"
            )
        elif change := _change_since_refusal(int(row.resource_id)):
            report.add(
                f"row {row.resource_id}: it was refused by the sealer{change}"
                f" ({details['reason']}, at {row.created_at})"
            )


def _change_since_refusal(row_id: int) -> str | None:
    """Return what happened to a refused row; None if it is still without a seal. A sealed row with
    its id may be another row, because no MAC covers the id.
    """
    if rows_without_seal([row_id]):
        return None
    if fetch_stored(_EXISTS, [row_id]):
        return ", and a row with its id is sealed"
    return " and removed since"


def sealed_rows(first: int, last: int) -> Iterator[tuple[StoredSeal, StoredRow | None]]:
    """Yield the seals at these positions in order, each with the row of its id, if there is one."""
    statement = _SEALED.format(columns=row_columns())
    while found := fetch_stored(statement, [first, last, BATCH_SIZE]):
        for values in found:
            yield (
                StoredSeal._make(values[:5]),
                None if values[5] is None else StoredRow._make(values[5:]),
            )
        if len(found) < BATCH_SIZE:
            return
        first = id_after(found[-1][0])


def _unsealed_rows() -> Iterator[tuple[StoredRow, bool]]:
    first = LOWEST_ID
    statement = _UNSEALED.format(columns=row_columns())
    while found := fetch_stored(statement, [first, BATCH_SIZE]):
        for values in found:
            yield StoredRow._make(values[:-1]), bool(values[-1])
        if len(found) < BATCH_SIZE:
            return
        first = id_after(found[-1][0])


def _missing(first: int, last: int) -> str:
    if first == last:
        return f"seal {first}: it is missing from the chain"
    return f"seals {first} to {last}: they are missing from the chain"
