"""The sealer adds every committed audit row to the chain while others write, wait or seal."""

from __future__ import annotations

import json
import math
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import DatabaseError, connection, transaction

from decisions.audit import sealer as sealer_module
from decisions.audit.chain import GENESIS, ChainHead, head_of_chain
from decisions.audit.checkpoints import newest_checkpoint, read_checkpoints, save_head
from decisions.audit.record import AuditEvent, record, record_all
from decisions.audit.sealer import BATCH_SIZE, Sealer
from decisions.audit.verify import AuditReport, check_audit_log
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, AuditSeal
from tests.support.audit.audit_attacks import attack, move_sequence
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.waiting import wait_until

TIMEOUT_S = 60.0
on_postgresql = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has one writer at a time"
)


@pytest.fixture(autouse=True)
def fresh_checkpoints(principal: Principal) -> Iterator[Path]:
    """Remove the checkpoints of other tests' chains."""
    folder = Path(settings.CONTINUITY_HOME) / "audit"
    shutil.rmtree(folder, ignore_errors=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def audit_event(resource_id: str) -> AuditEvent:
    return AuditEvent("run.started", "local", "run", resource_id, "ten_1", "ws_1")


def sealed() -> list[str]:
    """Return the resources of the sealed rows, in the order of the chain."""
    resource_ids = dict(AuditEntry.objects.values_list("id", "resource_id"))
    order = AuditSeal.objects.order_by("position").values_list("entry_id", flat=True)
    return [resource_ids[entry_id] for entry_id in order]


def test_rows_are_sealed_once_in_a_gap_free_chain() -> None:
    record_all([audit_event(f"run_{number}") for number in range(2 * BATCH_SIZE + 7)])
    sealer = Sealer()
    assert sealer.seal_all() == 2 * BATCH_SIZE + 7
    assert sealer.seal_all() == 0
    positions = list(AuditSeal.objects.order_by("position").values_list("position", flat=True))
    assert positions == list(range(1, 2 * BATCH_SIZE + 8))
    assert check_audit_log().faults == 0


def test_the_newest_head_is_stored_outside_the_database() -> None:
    for number in range(3):
        record(audit_event(f"run_{number}"))
        Sealer().seal_all()
    assert read_checkpoints().heads[-1] == head_of_chain()
    assert [head.position for head in read_checkpoints().heads] == [
        1,
        3,
    ]  # the first checkpoint and the newest


@on_postgresql
def test_a_row_that_commits_late_is_sealed_late(
    in_background: Callable[[Callable[[], object]], threading.Thread],
) -> None:
    written, commit = threading.Event(), threading.Event()

    def write_slowly() -> None:
        with transaction.atomic():
            record(audit_event("late"))
            written.set()
            assert commit.wait(TIMEOUT_S)

    sealer = Sealer()
    slow = in_background(write_slowly)
    assert written.wait(TIMEOUT_S)
    for number in range(5):
        record(audit_event(f"run_{number}"))
        sealer.seal_all()
    assert sealed() == [f"run_{number}" for number in range(5)]
    commit.set()
    slow.join(TIMEOUT_S)
    sealer.seal_all()
    assert sealed()[-1] == "late"
    assert check_audit_log().faults == 0


@on_postgresql
def test_the_settled_position_passes_gaps_of_rolled_back_rows() -> None:
    sealer = Sealer()
    with transaction.atomic():
        record(audit_event("undone"))
        transaction.set_rollback(True)
    record(audit_event("done"))
    for _ in range(3):
        sealer.seal_all()
    assert sealer._next_id == AuditEntry.objects.get().id + 1
    assert sealed() == ["done"]


def sealer_by_id() -> Sealer:
    """Return a sealer that looks for new rows by their ids alone."""
    sealer = Sealer()
    sealer._recent_due = math.inf
    return sealer


def test_a_forged_row_does_not_move_the_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealer_module, "MAX_REFUSALS", 0)  # their record would be a newer row
    record(audit_event("one"))
    newest, sealer = AuditEntry.objects.get().id, sealer_by_id()
    with move_sequence(newest + 1000):
        attack("INSERT INTO {rows} (id, {copied}) SELECT id + 1000, {forged} FROM {rows}")
        for _ in range(3):
            sealer.seal_all()
    assert sealer._next_id is not None
    assert sealer._next_id < newest + 1000


def test_rows_are_sealed_after_the_sequence_moved_back() -> None:
    record(audit_event("one"))
    newest, sealer = AuditEntry.objects.get().id, sealer_by_id()
    with move_sequence(newest + 1000):
        record(audit_event("far"))
        for _ in range(3):
            sealer.seal_all()
        attack("DELETE FROM {rows} WHERE id > %(id)s", id=newest)
    with move_sequence(newest):
        record(audit_event("near"))
        for _ in range(3):
            sealer.seal_all()
    assert AuditSeal.objects.filter(entry_id=newest + 1).exists()


def test_a_recent_row_with_a_low_id_is_sealed() -> None:
    sealer = Sealer()
    record(audit_event("one"))
    sealer.seal_all()
    record(audit_event("two"))
    attack("UPDATE {rows} SET id = -7 WHERE resource_id = 'two'")
    sealer._recent_due = 0.0
    sealer.seal_all()
    assert sealed() == ["one", "two"]


def test_a_sealer_starts_where_the_checkpoint_was_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sealer, read = Sealer(), list[int]()
    for number in range(5):
        record(audit_event(f"run_{number}"))
        sealer.seal_all()
    record(audit_event("last"))
    read_page = sealer_module._select

    def count_and_read(*args: Any) -> Any:
        found = read_page(*args)
        read.append(len(found))
        return found

    monkeypatch.setattr(sealer_module, "_select", count_and_read)
    assert sealer_by_id().seal_all() == 1
    assert sum(read) <= 3


@pytest.mark.parametrize("change", ["position", "next_id", "proof"])
def test_a_checkpoint_that_is_not_signed_is_not_used(fresh_checkpoints: Path, change: str) -> None:
    record(audit_event("one"))
    for _ in range(3):
        Sealer().seal_all()
    head = fresh_checkpoints / "head.json"
    fields = json.loads(head.read_text())
    head.write_text(json.dumps({**fields, change: 10**12}))
    assert newest_checkpoint() is None
    assert "head.json: a checkpoint" in check_audit_log().messages[0]


def test_concurrent_sealers_create_one_chain() -> None:
    record_all([audit_event(f"run_{number}") for number in range(300)])
    at_once([Sealer().seal_all for _ in range(8)])
    Sealer().seal_all()
    assert sealed() == [f"run_{number}" for number in range(300)]
    assert check_audit_log().faults == 0


def test_a_sealer_that_starts_later_seals_the_remaining_rows() -> None:
    record(audit_event("first"))
    Sealer().seal_all()
    record(audit_event("second"))
    assert Sealer().seal_all() == 1
    assert sealed() == ["first", "second"]


def test_the_sealer_thread_seals_while_others_write() -> None:
    sealer = Sealer()
    sealer.start()
    try:
        for number in range(20):
            record(audit_event(f"run_{number}"))
        wait_until(lambda: AuditSeal.objects.count() == 20)
    finally:
        sealer.stop()
    assert sorted(sealed()) == sorted(f"run_{number}" for number in range(20))


class Killed(BaseException):
    """What ends a sealer at a place of its code."""


@contextmanager
def failing_once(name: str, error: type[BaseException]) -> Iterator[None]:
    """Let this function of the sealer fail once, before it does anything."""
    with pytest.MonkeyPatch.context() as patched:

        def fail(*args: Any, **options: Any) -> None:
            raise error

        patched.setattr(sealer_module, name, fail)
        yield


@pytest.mark.parametrize("name", ["record_refusal", "seals_after"])
def test_a_refusal_is_recorded_after_a_page_that_was_rolled_back(name: str) -> None:
    record(audit_event("one"))
    sealer = Sealer()
    sealer.seal_all()
    attack("INSERT INTO {rows} ({copied}) SELECT {forged} FROM {rows}")
    record(audit_event("two"))
    with failing_once(name, DatabaseError), pytest.raises(DatabaseError):
        sealer.seal_all()
    sealer.seal_all()
    assert AuditEntry.objects.filter(action="audit.row_refused").count() == 1


def test_missing_checkpoints_are_recorded_before_new_ones_are_saved(
    fresh_checkpoints: Path,
) -> None:
    record(audit_event("one"))
    Sealer().seal_all()
    shutil.rmtree(fresh_checkpoints)
    record(audit_event("two"))
    with failing_once("record_missing_checkpoints", Killed), pytest.raises(Killed):
        Sealer().seal_all()
    sealer = Sealer()
    sealer.seal_all()
    sealer.seal_all()
    assert "the checkpoints were missing" in check_audit_log().messages[0]


def test_missing_checkpoints_are_recorded_once_while_none_can_be_saved(
    fresh_checkpoints: Path,
) -> None:
    record(audit_event("one"))
    Sealer().seal_all()
    shutil.rmtree(fresh_checkpoints)
    sealer = Sealer()
    for _ in range(3):
        with failing_once("save_head", OSError), pytest.raises(OSError):  # noqa: PT011
            sealer.seal_all()
    sealer.seal_all()
    assert AuditEntry.objects.filter(action="audit.checkpoints_missing").count() == 1


def test_a_sealer_killed_before_its_first_checkpoint_leaves_no_incident(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def save_or_die(head: ChainHead, *, next_id: int | None) -> None:
        if head != GENESIS:
            raise Killed
        save_head(head, next_id=next_id)

    record(audit_event("one"))
    with monkeypatch.context() as patched:
        patched.setattr(sealer_module, "save_head", save_or_die)
        with pytest.raises(Killed):
            Sealer().seal_all()
    assert sealed() == ["one"]
    assert check_audit_log().faults == 0
    Sealer().seal_all()
    assert check_audit_log() == AuditReport(sealed=1, checkpoints=1)


class Later(datetime):
    """A clock that is 40 seconds ahead."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        """Return the time of day in 40 seconds."""
        return datetime.now(tz) + timedelta(seconds=40)

    @staticmethod
    def monotonic() -> float:
        """Return the monotonic time in 40 seconds."""
        return time.monotonic() + 40


@contextmanager
def sealing_lock_held() -> Iterator[None]:
    """Hold the lock of the sealers in another connection."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [sealer_module._ADVISORY_LOCK])
        yield
    finally:
        other.close()


def let_40_seconds_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealer_module, "time", Later)
    monkeypatch.setattr(sealer_module, "datetime", Later)
    monkeypatch.setattr("decisions.audit.record.datetime", Later)


@on_postgresql
@pytest.mark.parametrize("sealed_before", [0, 1])
def test_a_row_removed_while_the_sealer_was_blocked_leaves_an_incident(
    sealed_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealer = Sealer()
    record_all([audit_event("one")] * sealed_before)
    assert sealer.seal_all() == sealed_before
    with sealing_lock_held():
        record(audit_event("two"))
        assert sealer.seal_all() == 0
        attack("DELETE FROM {rows} WHERE resource_id = 'two'")
        let_40_seconds_pass(monkeypatch)
    sealer.seal_all()
    sealer.seal_all()
    (message,) = check_audit_log().messages
    assert re.search(r"no row was sealed for 4\d s until", message)
    assert sealed()[sealed_before:] == ["log"]  # one incident, sealed with the rows that waited


@on_postgresql
def test_a_sealer_that_was_blocked_while_another_sealed_records_no_incident(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record(audit_event("one"))
    sealer = Sealer()
    sealer.seal_all()
    let_40_seconds_pass(monkeypatch)
    record(audit_event("two"))
    Sealer().seal_all()
    sealer.seal_all()
    assert check_audit_log().messages == []


def test_an_unwritable_home_directory_does_not_stop_sealing(fresh_checkpoints: Path) -> None:
    sealer, aside = Sealer(), fresh_checkpoints.with_name("aside")
    record(audit_event("one"))
    sealer.seal_all()
    fresh_checkpoints.rename(aside)
    fresh_checkpoints.write_text("in the way")
    record(audit_event("two"))
    with pytest.raises(OSError, match="exists"):
        sealer.seal_all()
    assert sealed() == ["one", "two"]
    fresh_checkpoints.unlink()
    aside.rename(fresh_checkpoints)
    sealer.seal_all()
    assert read_checkpoints().heads[-1] == head_of_chain()
    assert check_audit_log().faults == 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE decisions_auditseal SET hash = 'x'",
        "DELETE FROM decisions_auditseal",
        "UPDATE decisions_auditseal SET position = position + 5",
    ],
)
def test_the_database_refuses_to_change_a_seal(statement: str) -> None:
    record(audit_event("one"))
    Sealer().seal_all()
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    assert check_audit_log().faults == 0


@on_postgresql
def test_the_database_refuses_to_truncate_the_seals() -> None:
    record(audit_event("one"))
    Sealer().seal_all()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        connection.cursor().execute("TRUNCATE decisions_auditseal")
    assert check_audit_log().faults == 0


@pytest.mark.skipif(connection.vendor != "sqlite", reason="REPLACE is SQLite's")
def test_the_database_refuses_to_replace_a_seal() -> None:
    record(audit_event("one"))
    Sealer().seal_all()
    values = AuditSeal.objects.values_list("entry_id", "mac").get()
    for taken in ((1, 99, "x"), (9, values[0], "x"), (9, 99, values[1])):
        with pytest.raises(DatabaseError, match="append-only"), connection.cursor() as cursor:
            cursor.execute(
                "REPLACE INTO decisions_auditseal (position, entry_id, mac, prev, hash)"
                " VALUES (%s, %s, %s, '', '')",
                taken,
            )
