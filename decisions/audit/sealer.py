"""The sealer: adds each audit row to the hash chain soon after it is committed.

Writers never wait for the sealer, because it seals committed rows only. It seals rows in the order
in which it finds them, not by id, so that rows of a transaction that commits late are sealed too.

Where it looks for new rows:

- above a low-water mark, below which no id can appear any more. A row that Continuity did not write
  never moves the mark, and the mark returns to the beginning if the ids do;
- by time, which the MAC of a row covers, every few seconds: rows of the last half minute, whatever
  their ids;
- page by page through the whole log, an hour after the last time.

It judges each row by itself. A row that it cannot seal is refused: logged, recorded once in the
audit log as `audit.row_refused`, and passed over.
"""

from __future__ import annotations

import fcntl
import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import (
    connection,
    transaction,
)

from decisions.audit.chain import (
    GENESIS,
    ChainHead,
    StoredSeal,
    fault_of_cut,
    head_of_chain,
    is_our_link,
    is_seal_of,
    newest_cut,
    newest_links,
    seals_after,
)
from decisions.audit.checkpoints import (
    has_newest_checkpoint,
    is_in_chain,
    newest_checkpoint,
    save_head,
)
from decisions.audit.incidents import (
    list_acceptances,
    record_interruption,
    record_missing_checkpoints,
    record_refusal,
)
from decisions.audit.stored import (
    LOWEST_ID,
    StoredRow,
    fault_of,
    fetch_stored,
    id_after,
    row_columns,
)
from decisions.foundation.infra.outages import Outage
from decisions.foundation.infra.threads import RepeatingThread
from decisions.models import AuditEntry, AuditSeal

BATCH_SIZE = 500  # rows per transaction
POLL_EVERY_S = 0.5
RECENT_EVERY_S = 5.0  # how often rows are looked for by time,
RECENT = timedelta(seconds=30)  # and how far before the last time: clocks of writers may differ
LOOK_BACK_EVERY_S = 3600.0
INTERRUPTED = timedelta(seconds=10)  # for how long no sealer may work before it is an incident
MAX_REFUSALS = 100  # refused rows that one process logs and records; it passes over all
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
        pg_get_serial_sequence('decisions_auditentry', 'id')::regclass), 0),
        (SELECT max(id) FROM decisions_auditentry)
"""
# A seal that has the row's id is read with it, to be checked: a forged one does not count.
_PAGE = """
    SELECT {columns}, s.position, s.entry_id, s.mac, s.prev, s.hash
    FROM decisions_auditentry e LEFT JOIN decisions_auditseal s ON s.entry_id = e.id
    WHERE {condition} ORDER BY e.id LIMIT %s
"""
_RECENT = "SELECT id FROM decisions_auditentry WHERE created_at >= %s"
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _LastIds:
    """The last id that was given out, and the last one that a row has; the same on SQLite."""

    given: int | None
    stored: int | None


@dataclass(frozen=True, slots=True)
class _Pending:
    """The last id at some time, and the transactions that were writing then.

    When these have ended, no row with a lower or equal id can appear any more.
    """

    last_id: int
    writers: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Found:
    """A row, and the seal that has its id, if any."""

    row: StoredRow
    seal: StoredSeal | None

    @property
    def is_sealed(self) -> bool:
        """Whether the sealer wrote the seal, for this row."""
        return self.seal is not None and is_seal_of(self.seal, self.row)


@dataclass(frozen=True, slots=True)
class _Page:
    """The rows that were read in one transaction, and how many of them were sealed."""

    found: list[_Found]
    sealed: int


class Sealer:
    """Seals new rows on a background thread, from `start` to `stop`.

    Any number of sealers may run; a lock lets one of them work at a time.
    """

    def __init__(self) -> None:
        self._next_id: int | None = None  # the mark; None: not read from the checkpoint yet
        self._newest_sealed = LOWEST_ID  # the highest id of the rows that were found sealed
        self._pending: _Pending | None = None
        # The last ids of a pass that saw all rows and sealed none: until they change, Continuity
        # has written no row above the mark.
        self._seen_last: _LastIds | None = None
        self._recent_from = datetime.now(UTC)
        self._recent_due = self._look_back_due = 0.0  # on the monotonic clock
        self._look_back_from = LOWEST_ID
        self._page_at = math.inf  # when the last page was begun, on the monotonic clock
        self._saved = GENESIS
        self._has_recorded_loss = False  # of the checkpoints, since it saved one
        self._refused: set[int] = set()
        self._acceptances: set[str] = set()  # those that the refused rows were compared with
        outage = Outage(
            log,
            on_failure="audit rows are not sealed while the database or the home is unavailable",
            on_recovery="audit rows are sealed again",
        )
        self._thread = RepeatingThread(
            self._seal_and_look_back,
            name="sealer",
            every_s=POLL_EVERY_S,
            last=self.seal_all,
            outage=outage,
        )

    def start(self) -> None:
        """Start the background thread."""
        self._thread.start()

    def stop(self) -> None:
        """Seal what is committed by now, and stop the thread."""
        self._thread.stop(STOP_S)

    def _seal_and_look_back(self) -> None:
        self.seal_all()
        if time.monotonic() >= self._look_back_due:
            self.look_back()

    def seal_all(self) -> int:
        """Seal all new rows and save the new head outside the database; return their number.

        Does nothing while another sealer holds the lock. Commits each batch.

        Raises:
            Error, OSError: Earlier batches stay sealed.
        """
        if self._next_id is None:
            self._next_id = self._continue_from_checkpoint()
            self._page_at = time.monotonic()
        last = _read_last_ids()
        if last == self._seen_last and time.monotonic() < self._recent_due:
            return 0
        settled = self._newly_settled(last.given)
        sealed, is_complete = self._seal_from(self._next_id)
        if is_complete:
            self._next_id = max(self._next_id, id_after(min(settled, self._newest_sealed)))
        is_settled = is_complete and not sealed and settled == last.given
        self._seen_last = last if is_settled else None
        return sealed + self._seal_recent()

    def _seal_recent(self) -> int:
        """Seal the rows of the last seconds that have an id below the mark."""
        if time.monotonic() < self._recent_due:
            return 0
        started_at, sealed = datetime.now(UTC), 0
        since = connection.ops.adapt_datetimefield_value(self._recent_from - RECENT)
        # The ids first: in one query with the order, the database might read the whole log.
        ids = sorted(row_id for (row_id,) in fetch_stored(_RECENT, [since]))
        for start in range(0, len(ids), BATCH_SIZE):
            batch = ids[start : start + BATCH_SIZE]
            condition = f"e.id IN ({', '.join(['%s'] * len(batch))})"
            done = self._seal_page(condition, batch)
            if done is None or self._thread.stopping.is_set():
                return sealed
            sealed += done.sealed
        self._recent_from = started_at
        self._recent_due = time.monotonic() + RECENT_EVERY_S
        return sealed

    def look_back(self) -> None:
        """Seal rows in the next page of the whole log, whatever their ids and times."""
        done = self._seal_page("e.id >= %s", [self._look_back_from])
        if done is None:
            return
        if len(done.found) == BATCH_SIZE:
            self._look_back_from = id_after(done.found[-1].row.id)
        else:
            self._look_back_from = LOWEST_ID
            self._look_back_due = time.monotonic() + LOOK_BACK_EVERY_S

    def _continue_from_checkpoint(self) -> int:
        """Return the id at which to start: that of the newest checkpoint, if it is signed and the
        chain still has its head; else the lowest.
        """
        checkpoint = newest_checkpoint()
        if (
            checkpoint is None
            or checkpoint.next_id is None
            or not is_in_chain(checkpoint, newest_cut())
        ):
            return LOWEST_ID
        self._newest_sealed = checkpoint.next_id - 1
        self._recent_from = min(self._recent_from, datetime.fromtimestamp(checkpoint.at, UTC))
        return checkpoint.next_id

    def _seal_from(self, first: int) -> tuple[int, bool]:
        """Seal the rows from an id on; return their number, and whether all rows were seen."""
        sealed = 0
        while True:
            done = self._seal_page("e.id >= %s", [first])
            if done is None:
                return sealed, False
            sealed += done.sealed
            if len(done.found) < BATCH_SIZE:
                return sealed, True
            if self._thread.stopping.is_set():
                return sealed, False
            first = id_after(done.found[-1].row.id)

    def _seal_page(self, condition: str, params: Sequence[int]) -> _Page | None:
        """Seal the first rows of a condition in one transaction, and save the new head; None if
        another sealer holds the lock.
        """
        begun_at = time.monotonic()
        with _sealing_lock() as is_held:
            if not is_held:
                return None
            self._record_interruption(begun_at - self._page_at)  # sealed with this page
            found = _select(condition, params)
            wanted, refused = self._judge(found)
            recorded = self._record_refusals(refused)
            before, head = self._seal(wanted)
        self._refused.update(recorded)  # not before their incidents are committed
        self._page_at = begun_at
        self._save_head(head)
        return _Page(found, head.position - before.position)

    def _record_interruption(self, paused_s: float) -> None:
        """Record an incident if no sealer worked for so long that rows could be removed meanwhile.

        On SQLite, what blocks the sealer blocks every writer.
        """
        if connection.vendor != "postgresql" or paused_s <= INTERRUPTED.total_seconds():
            return
        newest = next(newest_links(), None)
        recent = AuditEntry.objects.filter(created_at__gt=datetime.now(UTC) - INTERRUPTED)
        if newest is not None and recent.filter(id=newest.entry_id).exists():
            return  # another sealer works
        log.error(
            "no audit row was sealed for too long; run `manage.py verify_audit`",
            extra={"seconds": int(paused_s)},
        )
        record_interruption(int(paused_s))

    def _judge(self, found: list[_Found]) -> tuple[list[StoredRow], dict[int, str]]:
        """Return the rows that have no seal yet; and why others cannot have one, by their ids."""
        wanted: dict[str, StoredRow] = {}
        refused: dict[int, str] = {}
        for one in found:
            row = one.row
            if one.is_sealed:
                self._newest_sealed = max(self._newest_sealed, row.id)
            elif reason := _fault_of(one):
                refused[row.id] = reason
            elif row.mac in wanted:
                refused[row.id] = f"it is a copy of row {wanted[row.mac].id}"
            else:
                wanted[row.mac] = row
        taken = AuditSeal.objects.filter(mac__in=list(wanted)) if wanted else []
        for seal in taken:
            refused[wanted.pop(seal.mac).id] = f"seal {seal.position} has its MAC already"
        return list(wanted.values()), refused

    def _record_refusals(self, refused: dict[int, str]) -> list[int]:
        """Log and record the rows that this sealer did not refuse before; return their ids."""
        if not refused:
            return []
        self._forget_accepted()
        room = MAX_REFUSALS - len(self._refused)
        new = [row_id for row_id in refused if row_id not in self._refused]
        for row_id in new[: max(0, room)]:
            log.error(
                "an audit row was not written by Continuity and is not sealed; run `manage.py"
                " verify_audit`",
                extra={"entryId": row_id, "reason": refused[row_id]},
            )
            record_refusal(row_id, refused[row_id])
        if len(new) > room >= 0:
            log.error("further audit rows are not sealed; run `manage.py verify_audit`")
        return new[: max(0, room + 1)]

    def _forget_accepted(self) -> None:
        """Forget the refused rows after each acceptance, whichever sealer sealed it: a later row
        with an id of theirs is another incident.
        """
        acceptances = list_acceptances()
        if acceptances - self._acceptances:
            self._refused.clear()
        self._acceptances |= acceptances

    def _seal(self, wanted: list[StoredRow]) -> tuple[ChainHead, ChainHead]:
        """Add the rows to the chain; return its head before and after."""
        before = head_of_chain()
        if not wanted:
            return before, before
        if before == GENESIS and not has_newest_checkpoint():
            save_head(GENESIS, next_id=None)  # so a chain without a checkpoint has lost it
        occupied = AuditSeal.objects.filter(position__gt=before.position)
        seals = seals_after(
            before,
            ((row.id, row.mac) for row in wanted),
            occupied=occupied.values_list("position", flat=True),
        )
        with transaction.atomic():
            AuditSeal.objects.bulk_create(seals)
        self._newest_sealed = max(self._newest_sealed, *(row.id for row in wanted))
        return before, ChainHead(seals[-1].position, seals[-1].hash)

    def _save_head(self, head: ChainHead) -> None:
        """Save the new head outside the database; first record that there was none, if so."""
        if head == self._saved:
            return
        if not self._has_recorded_loss and not has_newest_checkpoint():
            log.error("the audit checkpoints are missing; run `manage.py verify_audit`")
            record_missing_checkpoints(head.position)
            self._has_recorded_loss = True
        save_head(head, next_id=self._next_id)
        self._saved, self._has_recorded_loss = head, False

    def _newly_settled(self, last_id: int | None) -> int:
        """Return the id up to which no further row can appear; `last_id` is the last one now.

        On SQLite, which has one writer at a time, ids are committed in order. If the ids have moved
        back below the mark, the search begins again.
        """
        if connection.vendor != "postgresql":
            self._restart_below(last_id)
            return last_id if last_id is not None else LOWEST_ID
        last_id = last_id or 0
        with connection.cursor() as cursor:  # after the last id: later writers take higher ids
            cursor.execute(_WRITERS)
            writers = frozenset(name for (name,) in cursor.fetchall())
        self._restart_below(last_id)
        if self._pending is None:
            self._pending = _Pending(last_id, writers)
        if self._pending.writers & writers:
            return LOWEST_ID
        settled = self._pending.last_id
        self._pending = _Pending(last_id, writers)
        return settled

    def _restart_below(self, last_id: int | None) -> None:
        if self._next_id is None or last_id is None or last_id >= self._next_id - 1:
            return
        log.error(
            "the ids of audit rows have moved back: rows were removed, or the sequence was changed;"
            " run `manage.py verify_audit`",
            extra={"lastId": last_id, "nextId": self._next_id},
        )
        self._next_id = self._newest_sealed = LOWEST_ID
        self._pending = None


def _read_last_ids() -> _LastIds:
    if connection.vendor != "postgresql":
        last_id = AuditEntry.objects.order_by("-id").values_list("id", flat=True).first()
        return _LastIds(last_id, last_id)
    with connection.cursor() as cursor:
        cursor.execute(_LAST_ID)
        given, stored = cursor.fetchone()
    return _LastIds(int(given), stored)


def _fault_of(found: _Found) -> str | None:
    """Return why a row without a valid seal cannot be sealed; None if it can."""
    if found.seal is None:
        return fault_of(found.row) or fault_of_cut(found.row)
    if is_our_link(*found.seal):
        return "another row was sealed under its id"
    return f"seal {found.seal.position} has its id and is forged"


def _select(condition: str, params: Sequence[int]) -> list[_Found]:
    statement = _PAGE.format(columns=row_columns(), condition=condition)
    rows = fetch_stored(statement, [*params, BATCH_SIZE])
    width = len(StoredRow._fields)
    return [
        _Found(
            StoredRow._make(values[:width]),
            None if values[width] is None else StoredSeal._make(values[width:]),
        )
        for values in rows
    ]


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
