"""The sealer: adds each audit row to the hash chain soon after it is committed.

Writers never wait for the sealer, because it seals committed rows only. It seals rows in the order
in which it finds them, not by id, so that rows of a transaction that commits late are sealed too.
Each search starts at a low-water mark below which no id can appear any more.
"""

from __future__ import annotations

import fcntl
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import (
    DatabaseError,
    InterfaceError,
    close_old_connections,
    connection,
    transaction,
)
from django.db.models import Exists, OuterRef

from decisions.audit.chain import GENESIS, ChainHead, head_of_chain, seals_after
from decisions.audit.checkpoints import save_head
from decisions.audit.record import is_genuine
from decisions.models import AuditEntry, AuditSeal

BATCH_SIZE = 500  # rows per transaction
POLL_EVERY_S = 0.25
STOP_S = 10.0  # how long `stop` waits
_ADVISORY_LOCK = 0x436F6E7453656C  # an arbitrary number, the same in every process

# Transactions that may still add rows: an INSERT takes this lock before it takes an id.
_WRITERS = """
    SELECT virtualtransaction FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'decisions_auditentry'::regclass
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND mode = 'RowExclusiveLock' AND pid IS DISTINCT FROM pg_backend_pid()
"""
_LAST_ID = """
    SELECT coalesce(pg_sequence_last_value(
        pg_get_serial_sequence('decisions_auditentry', 'id')::regclass), 0)
"""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Pending:
    """The last id at some time, and the transactions that were writing then.

    When these have ended, no row with a lower or equal id can appear any more.
    """

    last_id: int
    writers: frozenset[str]


class Sealer:
    """Seals new rows on a background thread, from `start` to `stop`.

    Any number of sealers may run; a lock lets one of them work at a time.
    """

    def __init__(self) -> None:
        self._settled = 0
        self._pending: _Pending | None = None
        self._saved = GENESIS
        self._refused: set[int] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sealer", daemon=True)

    def start(self) -> None:
        """Start the background thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the current batch and stop the thread."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    def _run(self) -> None:
        while not self._stopping.is_set():
            close_old_connections()
            try:
                self.seal_all()
            except (DatabaseError, InterfaceError, OSError) as error:
                log.warning("sealing of audit rows failed, retrying: %s", error)
                connection.close()
            self._stopping.wait(POLL_EVERY_S)
        connection.close()

    def seal_all(self) -> int:
        """Seal all unsealed rows and save the new head outside the database; return their number.

        Does nothing while another sealer holds the lock. Commits each batch.

        Raises:
            DatabaseError, OSError: Earlier batches stay sealed.
        """
        sealed, settled, after = 0, self._newly_settled(), self._settled
        while True:
            with _sealing_lock() as is_held:
                if not is_held:
                    return sealed
                found = _unsealed(after)
                head = self._seal(found)
            self._save_head(head)
            sealed += len(found)
            if len(found) < BATCH_SIZE or self._stopping.is_set():
                break
            after = found[-1].id
        if len(found) < BATCH_SIZE:
            self._settled = max(self._settled, settled)
        return sealed

    def _seal(self, found: list[AuditEntry]) -> ChainHead:
        head = head_of_chain()
        genuine = self._genuine(found) if found else []
        if genuine:
            seals = seals_after(head, ((entry.id, entry.mac) for entry in genuine))
            with transaction.atomic():
                AuditSeal.objects.bulk_create(seals)
            head = ChainHead(seals[-1].position, seals[-1].hash)
        return head

    def _genuine(self, found: list[AuditEntry]) -> list[AuditEntry]:
        """Return the rows with a valid MAC, without copies; log the others, which stay unsealed."""
        macs = [entry.mac for entry in found]
        sealed = set(AuditSeal.objects.filter(mac__in=macs).values_list("mac", flat=True))
        genuine = []
        for entry in found:
            if entry.mac not in sealed and is_genuine(entry):
                genuine.append(entry)
                sealed.add(entry.mac)
            elif entry.id not in self._refused:
                self._refused.add(entry.id)
                log.error(
                    "an audit row was not written by Continuity and is not sealed; run `manage.py"
                    " verify_audit`",
                    extra={"entryId": entry.id},
                )
        return genuine

    def _save_head(self, head: ChainHead) -> None:
        if head != self._saved:
            save_head(head)
            self._saved = head

    def _newly_settled(self) -> int:
        """Return the id up to which no further row can appear.

        On SQLite, which has one writer at a time, ids are committed in order.
        """
        if connection.vendor != "postgresql":
            return AuditEntry.objects.order_by("-id").values_list("id", flat=True).first() or 0
        with connection.cursor() as cursor:
            cursor.execute(_LAST_ID)  # before the writers: later ones take higher ids
            last_id = int(cursor.fetchone()[0])
            cursor.execute(_WRITERS)
            writers = frozenset(name for (name,) in cursor.fetchall())
        if self._pending is None:
            self._pending = _Pending(last_id, writers)
        if self._pending.writers & writers:
            return self._settled
        settled = self._pending.last_id
        self._pending = _Pending(last_id, writers)
        return settled


def _unsealed(after: int) -> list[AuditEntry]:
    sealed = AuditSeal.objects.filter(entry_id=OuterRef("id"))
    rows = AuditEntry.objects.filter(id__gt=after).exclude(Exists(sealed))
    return list(rows.order_by("id")[:BATCH_SIZE])


def unsealed_backlog(at_most: int) -> tuple[int, datetime | None]:
    """Return the number of rows to be sealed, counted up to `at_most`, and the time of the oldest.

    Only rows after the newest seal count; `verify_audit` reports earlier unsealed rows.
    """
    newest = AuditSeal.objects.order_by("-position").values_list("entry_id", flat=True).first()
    sealed = AuditSeal.objects.filter(entry_id=OuterRef("id"))
    rows = AuditEntry.objects.filter(id__gt=newest or 0).exclude(Exists(sealed)).order_by("id")
    written = list(rows.values_list("created_at", flat=True)[:at_most])
    return len(written), min(written, default=None)


@contextmanager
def _sealing_lock() -> Iterator[bool]:
    """Try to take the lock that only one sealer holds at a time; yields whether it is held."""
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_ADVISORY_LOCK])
            yield bool(cursor.fetchone()[0])
        return
    # Not in a transaction, which would block writers while links are computed.
    with (Path(settings.CONTINUITY_HOME) / "sealer.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
