"""Archiving: sealed rows are exported to a file that can be verified alone, then removed.

The steps of `archive`, each complete before the next:

1. the whole log is verified; a log with a fault is not archived;
2. the rows are written to FILE.partial, which is verified and renamed to FILE;
3. the cut is recorded as a row of the log, `audit.archived`, and sealed: up to which seal rows may
   be missing, and the hash of that seal;
4. the rows and their seals are removed in batches, in the order of the chain.

A process that is killed leaves every row in the log or in FILE. Repeat the command with another
file: it exports what is still in the log, again, and continues.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.db import Error, connection, transaction

from decisions.audit.bundle import Record, bundle_lines
from decisions.audit.chain import (
    ARCHIVED,
    ChainHead,
    StoredSeal,
    audit_record,
    head_of_chain,
    is_our_link,
)
from decisions.audit.record import AuditEvent, record
from decisions.audit.sealer import Sealer
from decisions.audit.stored import fault_of, fields_of, iso, parse_metadata
from decisions.audit.verify import check_audit_log, sealed_rows
from decisions.audit.verify_bundle import check_bundle
from decisions.models import AuditEntry, AuditSeal

BATCH_SIZE = 2000  # rows per transaction
SEALED_WITHIN_S = 30.0
LOCK_TIMEOUT_MS = 5000
_FIRST_LATER = """
    SELECT min(s.position) FROM decisions_auditseal s
    JOIN decisions_auditentry e ON e.id = s.entry_id WHERE e.created_at >= %s
"""
_UNSEALED = """
    SELECT count(*) FROM decisions_auditentry e WHERE e.created_at < %s
    AND NOT EXISTS (SELECT 1 FROM decisions_auditseal s WHERE s.entry_id = e.id)
"""
_POSTGRESQL_TRIGGERS = {
    "decisions_auditentry": "audit_no_change",
    "decisions_auditseal": "seals_no_change",
}
_SQLITE_TRIGGERS = ("audit_no_delete", "seals_no_delete")


class ArchiveError(Exception):
    """The log was not archived; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Archive:
    """The rows that one file has: those of the seals `first` to `last.position`."""

    first: int
    prev: str
    last: ChainHead
    rows: int
    sha256: str


def archive(path: Path, *, before: datetime, actor: str, processes: int = 1) -> Archive:
    """Export the sealed rows that are older than a time to a new file, and remove them.

    The rows are a part of the chain: it ends before the first seal of a row that is not older. The
    newest seal always stays.

    Raises:
        ArchiveError: A row is not sealed, the log has a fault, there is nothing to archive, the
            file exists, or the database user may not remove rows.
    """
    partial = path.with_name(f"{path.name}.partial")
    _refuse_existing(path, partial)
    first, last = _part_before(before)
    report = check_audit_log(processes)
    if report.faults:
        raise ArchiveError(
            f"The audit log is NOT intact ({report.messages[0]}), so nothing was archived. See"
            " `manage.py verify_audit`."
        )
    try:
        with transaction.atomic(), _deletion_allowed():
            pass
    except Error as error:
        raise ArchiveError(
            f"This database user may not remove audit rows ({_first_line(error)}). Use the owner of"
            " the tables."
        ) from None
    archived = _export(partial, first, last, before=before, actor=actor)
    _publish(partial, path)
    _record_cut(archived, path, before=before, actor=actor)
    try:
        _prune(last.position)
    except Error as error:
        raise ArchiveError(
            f"{path} is complete, but not all of its rows were removed ({_first_line(error)})."
            " Repeat with another file."
        ) from None
    return archived


def _first_line(error: Error) -> str:
    return str(error).strip().splitlines()[0]


def _refuse_existing(path: Path, partial: Path) -> None:
    if path.exists() or path.is_symlink():
        raise ArchiveError(f"{path} exists already; name a new file.")
    if partial.exists():
        raise ArchiveError(
            f"{partial} exists: another archive_audit writes it, or was killed. If none runs,"
            " remove it and repeat."
        )


def _part_before(before: datetime) -> tuple[StoredSeal, ChainHead]:
    """Return the first seal in the database, and the last one to archive."""
    at = connection.ops.adapt_datetimefield_value(before)
    with connection.cursor() as cursor:
        cursor.execute(_UNSEALED, [at])
        unsealed = int(cursor.fetchone()[0])
        cursor.execute(_FIRST_LATER, [at])
        first_later = cursor.fetchone()[0]
    if unsealed:
        raise ArchiveError(
            f"{unsealed} rows before {before.isoformat()} are not sealed. Start a scheduler, which"
            " seals them; `manage.py verify_audit` names those that it refuses."
        )
    end = head_of_chain().position - 1 if first_later is None else int(first_later) - 1
    values = AuditSeal.objects.filter(position__gte=1, position__lte=end).order_by("position")
    columns = ("position", "entry_id", "mac", "prev", "hash")
    oldest, newest = values.values_list(*columns).first(), values.values_list(*columns).last()
    if oldest is None or newest is None:
        raise ArchiveError(f"There are no sealed rows before {before.isoformat()}.")
    return StoredSeal._make(oldest), StoredSeal._make(newest).head


def _export(
    partial: Path, first: StoredSeal, last: ChainHead, *, before: datetime, actor: str
) -> Archive:
    """Write the file and verify it; a file that cannot be written is removed."""
    head = {
        "bundle": "archive",
        "madeAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "madeBy": actor,
        "filters": {"before": before.isoformat()},
        "first": first.position,
        "prev": first.prev,
        "last": last.position,
        "hash": last.hash,
    }
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise ArchiveError(f"{partial} cannot be written: {error.strerror}.") from None
    digest = hashlib.sha256()
    try:
        with os.fdopen(descriptor, "wb") as file:
            for line in bundle_lines(head, _records(first.position, last.position)):
                file.write(line)
                digest.update(line)
            file.flush()
            os.fsync(file.fileno())
        report = check_bundle(partial)
        if report.faults:
            raise ArchiveError(f"The file was written wrongly: {report.messages[0]}.")
    except OSError as error:
        partial.unlink()
        raise ArchiveError(f"{partial} cannot be written: {error.strerror}.") from None
    except BaseException:
        partial.unlink()
        raise
    return Archive(first.position, first.prev, last, report.lines["audit"], digest.hexdigest())


def _records(first: int, last: int) -> Iterator[Record]:
    for link, row in sealed_rows(first, last):
        if row is None or not is_our_link(*link) or row.mac != link.mac or fault_of(row):
            raise ArchiveError(
                f"Row {link.entry_id} changed while it was exported. See `manage.py verify_audit`."
            )
        fields = fields_of(row, parse_metadata(row.metadata))
        yield audit_record(fields, iso(row.created_at), row.mac, link)


def _publish(partial: Path, path: Path) -> None:
    """Give the file its name, which nothing may have by now, durably.

    An empty file takes the name first: a rename alone would overwrite a file of another process,
    and not every file system has hard links.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        partial.unlink()
        if isinstance(error, FileExistsError):
            raise ArchiveError(f"{path} exists already; name a new file.") from None
        raise ArchiveError(f"{path} cannot be written: {error.strerror}.") from None
    try:
        partial.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        path.unlink()
        partial.unlink(missing_ok=True)
        raise ArchiveError(f"{path} cannot be written: {error.strerror}.") from None


def _record_cut(archived: Archive, path: Path, *, before: datetime, actor: str) -> None:
    """Record up to which seal the rows are removed, and wait until the record is sealed."""
    details: dict[str, Any] = {
        "position": archived.last.position,
        "hash": archived.last.hash,
        "first": archived.first,
        "rows": archived.rows,
        "before": before.isoformat(),
        "file": path.name,
        "sha256": archived.sha256,
    }
    record(AuditEvent(ARCHIVED, actor, "audit", "log", "", "", details))
    newest = AuditEntry.objects.filter(action=ARCHIVED).order_by("-created_at")[0]
    give_up_at = time.monotonic() + SEALED_WITHIN_S
    while not AuditSeal.objects.filter(entry_id=newest.id, mac=newest.mac).exists():
        if time.monotonic() > give_up_at:
            raise ArchiveError(
                f"{path} is complete, but nothing was removed: the record of it is not sealed after"
                f" {SEALED_WITHIN_S:.0f} s. Start a scheduler, then repeat with another file."
            )
        Sealer().seal_all()  # does nothing while a scheduler's sealer works
        time.sleep(0.1)


def _prune(last: int) -> None:
    """Remove the rows and seals up to a position, oldest first."""
    while True:
        oldest = AuditSeal.objects.filter(position__gte=1, position__lte=last).order_by("position")
        first = oldest.values_list("position", flat=True).first()
        if first is None:
            return
        _prune_batch(min(first + BATCH_SIZE - 1, last))


def _prune_batch(upto: int) -> None:
    """Remove the rows and seals up to a position, in one transaction."""
    with transaction.atomic(), _deletion_allowed(), connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM decisions_auditentry WHERE id IN"
            " (SELECT entry_id FROM decisions_auditseal WHERE position BETWEEN 1 AND %s)",
            [upto],
        )
        cursor.execute("DELETE FROM decisions_auditseal WHERE position BETWEEN 1 AND %s", [upto])


@contextmanager
def _deletion_allowed() -> Iterator[None]:
    """Lift the triggers that refuse deletion, for the caller's transaction alone: other
    transactions wait, and a rollback puts the triggers back.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
            for table, trigger in _POSTGRESQL_TRIGGERS.items():
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}")
            yield
            for table, trigger in _POSTGRESQL_TRIGGERS.items():
                cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER {trigger}")
            return
        cursor.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND name IN (%s, %s)",
            _SQLITE_TRIGGERS,
        )
        triggers = cursor.fetchall()
        for name, _ in triggers:
            cursor.execute(f"DROP TRIGGER {name}")
        yield
        for _, statement in triggers:
            cursor.execute(statement)
