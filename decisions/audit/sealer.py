"""The sealer: puts each audit row into the hash chain soon after it is committed (mechanisms 14).

Writers never wait for it, for it works behind them on rows that are there already. Rows are sealed
in the order in which it finds them, not in that of their ids: a transaction that commits late is
found late, and is found. Where it begins to look is a mark below which every id is settled.
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

BATCH_SIZE = 500  # rows of one transaction
POLL_EVERY_S = 0.25
_ADVISORY_LOCK = 0x436F6E7453656C  # "ContSel": any number, the same in every process

# Transactions that may still bring rows: an INSERT holds this lock before it takes an id.
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
    """An id, and who was writing when it was the last one: when they are done, it is settled."""

    last_id: int
    writers: frozenset[str]


class Sealer:
    """Seals what comes in, on a thread of its own, from `start` to `stop`. Any number of sealers at
    once is safe: one of them has the turn.
    """

    def __init__(self) -> None:
        self._settled = 0
        self._pending: _Pending | None = None
        self._noted = GENESIS
        self._refused: set[int] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sealer", daemon=True)

    def start(self) -> None:
        """Begin, on a thread of its own."""
        self._thread.start()

    def stop(self, within_s: float = 10.0) -> None:
        """Let the portion under way end and begin no other."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(within_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            close_old_connections()
            try:
                self.seal_all()
            except (DatabaseError, InterfaceError, OSError) as error:
                log.warning("sealing is put off: %s", error)
                connection.close()
            self._stopping.wait(POLL_EVERY_S)
        connection.close()

    def seal_all(self) -> int:
        """Seal what is there now and keep the new head outside the database; return how many rows.

        Does nothing while another sealer has the turn. Each portion commits.

        Raises:
            DatabaseError, OSError: What was sealed before is sealed.
        """
        sealed, settled, after = 0, self._newly_settled(), self._settled
        while True:
            with _turn() as mine:
                if not mine:
                    return sealed
                found = _unsealed(after)
                head = self._seal(found)
            self._note(head)
            sealed += len(found)
            if len(found) < BATCH_SIZE or self._stopping.is_set():
                break
            after = found[-1].id
        if len(found) < BATCH_SIZE:
            self._settled = max(self._settled, settled)
        return sealed

    def _seal(self, found: list[AuditEntry]) -> ChainHead:
        head = head_of_chain()
        fit = self._fit(found) if found else []
        if fit:
            seals = seals_after(head, ((entry.id, entry.mac) for entry in fit))
            with transaction.atomic():
                AuditSeal.objects.bulk_create(seals)
            head = ChainHead(seals[-1].position, seals[-1].hash)
        return head

    def _fit(self, found: list[AuditEntry]) -> list[AuditEntry]:
        """Return those that our writer wrote, each once; the others stay unsealed and are told."""
        macs = [entry.mac for entry in found]
        taken = set(AuditSeal.objects.filter(mac__in=macs).values_list("mac", flat=True))
        fit = []
        for entry in found:
            if entry.mac not in taken and is_genuine(entry):
                fit.append(entry)
                taken.add(entry.mac)
            elif entry.id not in self._refused:
                self._refused.add(entry.id)
                log.error(
                    "an audit row is not ours and is not sealed: see verify_audit",
                    extra={"entryId": entry.id},
                )
        return fit

    def _note(self, head: ChainHead) -> None:
        if head != self._noted:
            save_head(head)
            self._noted = head

    def _newly_settled(self) -> int:
        """Return the id up to which all rows that will ever be there are there by now.

        On SQLite there is one writer at a time, so ids are committed in order.
        """
        if connection.vendor != "postgresql":
            return AuditEntry.objects.order_by("-id").values_list("id", flat=True).first() or 0
        with connection.cursor() as cursor:
            cursor.execute(_LAST_ID)  # before the writers: who takes a later id is not asked about
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
    """Return how many rows wait to be sealed, counted up to `at_most`, and when the oldest of them
    was written; rows from before the newest seal are `verify_audit`'s matter.
    """
    newest = AuditSeal.objects.order_by("-position").values_list("entry_id", flat=True).first()
    sealed = AuditSeal.objects.filter(entry_id=OuterRef("id"))
    rows = AuditEntry.objects.filter(id__gt=newest or 0).exclude(Exists(sealed)).order_by("id")
    written = list(rows.values_list("created_at", flat=True)[:at_most])
    return len(written), min(written, default=None)


@contextmanager
def _turn() -> Iterator[bool]:
    """Yield whether this sealer has the turn; while it has, no other one seals."""
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_ADVISORY_LOCK])
            yield bool(cursor.fetchone()[0])
        return
    # Not in a transaction, which would keep writers out while links are made.
    with (Path(settings.CONTINUITY_HOME) / "sealer.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
