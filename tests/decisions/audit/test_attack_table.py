# ruff: noqa: S608  (attacks are plain SQL)
"""What `verify_audit` answers to each attack of a person who owns the database but not the keys.

The attacker lifts every trigger and check of the database. Between the steps of an attack the
sealer goes on sealing, as in a running installation.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import IO

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction

from decisions.audit.incidents import accept_incidents
from decisions.audit.query import audit_records, list_audit_entries
from decisions.audit.record import AuditEvent, record
from decisions.audit.sealer import Sealer
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, AuditSeal
from tests.support.audit.audit_attacks import attack, checks_lifted, move_sequence

POSTGRESQL = connection.vendor == "postgresql"
FAR = 10**12
_COPY = "INSERT INTO {rows} (id, {copied}) SELECT %(new)s, {copied} FROM {rows} WHERE id = %(id)s"
_FORGE = "INSERT INTO {rows} (id, {copied}) SELECT %(new)s, {forged} FROM {rows} WHERE id = %(id)s"
_EDIT_TEXT = "UPDATE {rows} SET metadata = %(text)s WHERE id = %(id)s"


class Log:
    """Ten sealed rows and the sealer that goes on sealing; `ids` are the rows', oldest first."""

    def __init__(self) -> None:
        self.sealer = Sealer()
        self.write(10)
        self.ids = list(AuditEntry.objects.order_by("id").values_list("id", flat=True))

    def write(self, count: int = 1) -> int:
        """Write rows and let the sealer work; return the id of the newest."""
        for number in range(count):
            record(an_event(number))
        self.seal()
        newest: int = AuditEntry.objects.order_by("-created_at").values_list("id", flat=True)[0]
        return newest

    def seal(self) -> None:
        """Let the sealer make three passes, as it does within a second."""
        for _ in range(3):
            self.sealer.seal_all()


def an_event(number: int) -> AuditEvent:
    metadata = {"tool": "bash.exec", "n": number}
    return AuditEvent("tool.called", "local", "run", f"run_{number}", "ten_1", "ws_1", metadata)


@pytest.fixture
def log(db: None) -> Iterator[Log]:
    """Return a log with a chain and checkpoints of its own; everything is rolled back."""
    folder = Path(settings.CONTINUITY_HOME) / "audit"
    shutil.rmtree(folder, ignore_errors=True)
    with move_sequence(None):
        yield Log()
    shutil.rmtree(folder, ignore_errors=True)


def verify_audit(*options: str) -> tuple[int, str]:
    """Return the exit status of the command and what it prints."""
    out = StringIO()
    try:
        call_command("verify_audit", *options, stdout=out)
    except CommandError as error:
        return error.returncode, out.getvalue() + str(error)
    return 0, out.getvalue()


def insert_without_the_key(log: Log) -> None:
    attack(_FORGE, id=log.ids[0], new=log.ids[-1] + 5)
    log.seal()


def insert_a_copy(log: Log) -> None:
    attack(_COPY, id=log.ids[0], new=log.ids[-1] + 5)
    log.seal()


def insert_far_ahead(log: Log) -> None:
    attack(_COPY, id=log.ids[0], new=FAR)
    log.seal()
    attack("DELETE FROM {rows} WHERE id = %(new)s", new=FAR)


def insert_far_ahead_and_move_the_sequence_back(log: Log) -> None:
    """The rows that follow are sealed, so that the removal of one is found."""
    with move_sequence(FAR):
        attack(_COPY, id=log.ids[0], new=FAR)
        log.seal()
        attack("DELETE FROM {rows} WHERE id = %(new)s", new=FAR)
    with move_sequence(log.ids[-1]):
        newest = log.write(3)
        attack("DELETE FROM {rows} WHERE id = %(id)s", id=newest)


def move_the_sequence_ahead_and_back(log: Log) -> None:
    with move_sequence(FAR):
        log.write()
    with move_sequence(log.ids[-1]):
        newest = log.write(3)
        attack("DELETE FROM {rows} WHERE id = %(id)s", id=newest)


def number_new_rows_below_the_old(log: Log) -> None:
    record(an_event(77))
    newest = AuditEntry.objects.latest("created_at").id
    attack("UPDATE {rows} SET id = -7 WHERE id = %(id)s", id=newest)
    log.sealer.look_back()
    log.seal()
    attack("DELETE FROM {rows} WHERE id = -7")


def edit(log: Log) -> None:
    attack("UPDATE {rows} SET actor = 'x' WHERE id = %(id)s", id=log.ids[4])


def delete(log: Log) -> None:
    attack("DELETE FROM {rows} WHERE id = %(id)s", id=log.ids[4])


def delete_with_its_seal(log: Log) -> None:
    delete(log)
    attack("DELETE FROM {seals} WHERE position = 5")


def swap(log: Log) -> None:
    attack(
        "UPDATE {rows} SET id = -1 WHERE id = %(a)s",
        "UPDATE {rows} SET id = %(a)s WHERE id = %(b)s",
        "UPDATE {rows} SET id = %(b)s WHERE id = -1",
        a=log.ids[2],
        b=log.ids[6],
    )


def renumber(log: Log) -> None:
    attack("UPDATE {rows} SET id = %(new)s WHERE id = %(id)s", id=log.ids[4], new=FAR)


def close_the_gap(log: Log) -> None:
    delete_with_its_seal(log)
    attack(
        "UPDATE {seals} SET position = -position WHERE position > 5",
        "UPDATE {seals} SET position = -position - 1 WHERE position < 0",
    )


def cut_the_end_off(log: Log) -> None:
    attack(
        "DELETE FROM {rows} WHERE id >= %(id)s",
        "DELETE FROM {seals} WHERE entry_id >= %(id)s",
        id=log.ids[7],
    )


def remove_everything(log: Log) -> None:
    verb = "TRUNCATE" if POSTGRESQL else "DELETE FROM"
    attack(f"{verb} {{rows}}", f"{verb} {{seals}}", changes_rows=False)


def forge_a_seal_for_a_future_row(log: Log) -> None:
    attack(
        "INSERT INTO {seals} (position, entry_id, mac, prev, hash)"
        " SELECT -1, max(id) + 1, 'x', '', '' FROM {rows}"
    )
    with move_sequence(log.ids[-1]):
        log.write()
    attack("DELETE FROM {rows} WHERE id = %(id)s", id=log.ids[-1] + 1)
    attack("DELETE FROM {seals} WHERE position = -1")


def reuse_the_id_of_a_refused_row(log: Log) -> None:
    """The refused row is removed; the next row has its id, and is sealed."""
    forge_a_seal_for_a_future_row(log)
    record(an_event(11))
    newest = AuditEntry.objects.latest("created_at").id
    attack("UPDATE {rows} SET id = %(id)s WHERE id = %(new)s", id=log.ids[-1] + 1, new=newest)
    log.sealer.look_back()
    assert AuditSeal.objects.filter(entry_id=log.ids[-1] + 1).exists()


def reuse_the_id_of_an_accepted_incident(log: Log) -> None:
    """An operator accepted the incident of the first row with this id, not that of the second."""
    insert_far_ahead(log)
    verify_audit("--accept-incidents", "the forged row was removed")
    log.seal()
    attack(_COPY, id=log.ids[0], new=FAR)
    log.sealer.look_back()
    attack("DELETE FROM {rows} WHERE id = %(new)s", new=FAR)
    log.seal()


def forge_the_last_possible_seal(log: Log) -> None:
    attack(
        "INSERT INTO {seals} (position, entry_id, mac, prev, hash)"
        f" VALUES ({2**63 - 1}, -99, 'x', '', '')"
    )
    log.write(2)
    assert AuditSeal.objects.filter(position__gt=10).count() == 3


def forge_the_next_seal(log: Log) -> None:
    attack(
        "INSERT INTO {seals} (position, entry_id, mac, prev, hash) VALUES (11, -99, 'x', '', '')"
    )
    log.write(2)
    assert list(AuditSeal.objects.values_list("position", flat=True).order_by("position"))[10:] == [
        11,
        12,
        13,
    ]


def forge_metadata(text: str) -> Callable[[Log], None]:
    """Return the attack that inserts a row with this metadata before genuine rows."""

    def insert(log: Log) -> None:
        columns = "tenant_id, workspace_id, action, actor, resource_type, resource_id, created_at"
        with checks_lifted():
            attack(
                f"INSERT INTO {{rows}} (id, {columns}, mac, metadata) SELECT %(new)s, {columns},"
                " mac, %(text)s FROM {rows} WHERE id = %(id)s",
                id=log.ids[0],
                new=log.ids[-1] + 1,
                text=text,
            )
        with move_sequence(log.ids[-1] + 1):
            log.write(2)
        assert AuditSeal.objects.filter(position__gt=10).count() == 2 + 1  # and the refusal

    insert.__name__ = f"forge_metadata {text[:20]}"
    return insert


def insert_undecodable_text(log: Log) -> None:
    forge_metadata("{}")(log)
    attack("UPDATE {rows} SET actor = CAST(x'ff41' AS TEXT) WHERE id = %(id)s", id=log.ids[-1] + 1)
    log.write(2)
    assert AuditSeal.objects.count() == 10 + 2 + 1 + 2


def edit_into_duplicate_keys(log: Log) -> None:
    text = '{"tool": "echo", "tool": "bash.exec", "n": 4}'
    with checks_lifted(text_metadata=True):
        attack(_EDIT_TEXT, id=log.ids[4], text=text)


def edit_into_escaped_keys(log: Log) -> None:
    """SQLite's JSON functions compare keys as they are written."""
    attack(_EDIT_TEXT, id=log.ids[4], text='{"\\u0074ool": "bash.exec", "n": 4}')


def edit_into_a_long_fraction(log: Log) -> None:
    record(AuditEvent("tool.called", "local", "run", "run_f", "ten_1", "ws_1", {"n": 0.1}))
    log.seal()
    newest = AuditEntry.objects.latest("created_at").id
    attack(_EDIT_TEXT, id=newest, text='{"n": 0.1000000000000000000001}')


def edit_the_era(log: Log) -> None:
    attack(
        "UPDATE {rows} SET created_at = (to_char(created_at AT TIME ZONE 'UTC',"
        " 'YYYY-MM-DD HH24:MI:SS.US') || '+00 BC')::timestamptz WHERE id = %(id)s",
        id=log.ids[4],
    )


def edit_the_storage_class(log: Log) -> None:
    attack("UPDATE {rows} SET metadata = CAST(metadata AS BLOB) WHERE id = %(id)s", id=log.ids[4])


def checkpoints() -> Path:
    return Path(settings.CONTINUITY_HOME) / "audit"


def delete_the_checkpoints(log: Log) -> None:
    shutil.rmtree(checkpoints())


def delete_the_checkpoints_and_go_on(log: Log) -> None:
    shutil.rmtree(checkpoints())
    log.write(2)


def delete_the_newest_checkpoint(log: Log) -> None:
    (checkpoints() / "head.json").unlink()


def delete_past_checkpoints(log: Log) -> None:
    log.write()
    (checkpoints() / "checkpoints.jsonl").unlink()


def restore_an_old_database(log: Log) -> None:
    """Three rows and their seals are gone, as after a restore; then the installation goes on."""
    cut_the_end_off(log)
    log.sealer = Sealer()
    log.write(5)


class Backup:
    """The rows, the seals and the checkpoints at one time."""

    def __init__(self) -> None:
        self.rows = list(AuditEntry.objects.order_by("id"))
        self.seals = list(AuditSeal.objects.all())
        self.files = {path: path.read_bytes() for path in checkpoints().iterdir()}

    def restore(self, log: Log) -> None:
        """Replace the log by the backup; a new sealer goes on."""
        attack("DELETE FROM {rows}", "DELETE FROM {seals}")
        AuditEntry.objects.bulk_create(self.rows)
        AuditSeal.objects.bulk_create(self.seals)
        for path, content in self.files.items():
            path.write_bytes(content)
        log.sealer = Sealer()


def archive_and_restore(log: Log) -> Backup:
    """Archive 14 of 15 rows, and restore a backup of 10 two minutes later; return what the restore
    undid.
    """
    backup = Backup()
    log.write(5)
    file = checkpoints() / "archive.jsonl"
    before = f"{datetime.now(UTC)}"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("decisions.audit.record.datetime", Clock(timedelta(minutes=2)))
        call_command("archive_audit", "--before", before, str(file), stdout=StringIO())
    undone = Backup()
    backup.restore(log)
    return undone


def repeat_a_cut_with_its_seals(log: Log) -> None:
    """Replace the rows by those of the log that the restore undid, but not the checkpoints."""
    undone = archive_and_restore(log)
    log.write()
    remove_with_seals(1, 11)
    AuditEntry.objects.bulk_create(undone.rows)
    AuditSeal.objects.bulk_create(undone.seals)


def repeat_a_cut_with_its_seals_and_go_on(log: Log) -> None:
    repeat_a_cut_with_its_seals(log)
    with move_sequence(log.ids[-1] + 20):
        log.write()


def repeat_a_cut_that_a_restore_undid(log: Log) -> None:
    cut = archive_and_restore(log).rows[-1]
    AuditEntry.objects.bulk_create([cut])
    log.seal()
    assert not AuditSeal.objects.filter(entry_id=cut.id).exists()
    remove_with_seals(1, 5)


def repeat_a_cut_once_the_chain_is_longer(log: Log) -> None:
    cut = archive_and_restore(log).rows[-1]
    log.write(10)
    cut.id += 20
    AuditEntry.objects.bulk_create([cut])
    log.seal()
    assert not AuditSeal.objects.filter(entry_id=cut.id).exists()
    remove_with_seals(1, 14)


def repeat_a_cut_that_was_not_sealed_yet(log: Log) -> None:
    """No sealer has seen the row of the cut."""
    AuditEntry.objects.bulk_create([archive_and_restore(log).rows[-1]])
    remove_with_seals(1, 9)


def remove_with_seals(first: int, last: int) -> None:
    attack(
        "DELETE FROM {rows} WHERE id IN"
        " (SELECT entry_id FROM {seals} WHERE position BETWEEN %(first)s AND %(last)s)",
        "DELETE FROM {seals} WHERE position BETWEEN %(first)s AND %(last)s",
        first=first,
        last=last,
        changes_rows=False,
    )


def leave_rows_unsealed(log: Log) -> None:
    _write_unsealed(timedelta(minutes=2))


def set_the_clock_back(log: Log) -> None:
    """To a clock that was set back by an hour, rows that wait for their seal look new forever."""
    _write_unsealed(timedelta(hours=-1))


class Clock:
    """A clock that is behind."""

    def __init__(self, behind: timedelta) -> None:
        self.behind = behind

    def now(self, zone: tzinfo) -> datetime:
        return datetime.now(zone) - self.behind


def _write_unsealed(age: timedelta) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("decisions.audit.record.datetime", Clock(age))
        record(an_event(1))


def set_the_clock_back_while_sealing(log: Log) -> None:
    for days in (1, 400):
        _write_unsealed(timedelta(days=days))
        log.seal()


def nothing(log: Log) -> None:
    """Is no attack."""


OTHER_ARCHIVE = "seal 11: the archived chain differs from a checkpoint"
ATTACKS: list[tuple[Callable[[Log], None], str, int]] = [
    (nothing, "The audit log is intact: 10 sealed rows", 0),
    (insert_without_the_key, "(not sealed): not written by Continuity", 1),
    (insert_a_copy, "(not sealed): it is a copy of another row", 1),
    (insert_far_ahead, "was refused by the sealer and removed since", 1),
    (insert_far_ahead_and_move_the_sequence_back, "(seal 14): the row was removed", 1),
    (move_the_sequence_ahead_and_back, "(seal 14): the row was removed", 1),
    (number_new_rows_below_the_old, "row -7 (seal 11): the row was removed", 1),
    (edit, "(seal 5): the row was edited", 1),
    (delete, "(seal 5): the row was removed", 1),
    (delete_with_its_seal, "seal 5: it is missing from the chain", 1),
    (swap, "(seal 3): the row was replaced by another", 1),
    (renumber, "(seal 5): the row was removed", 1),
    (close_the_gap, "(seal 5): the seal is not what the sealer wrote", 1),
    (cut_the_end_off, "seal 10: a checkpoint has it as head, but the chain ends at 7", 1),
    (remove_everything, "seal 10: a checkpoint has it as head, but the chain ends at 0", 1),
    (forge_a_seal_for_a_future_row, "was refused by the sealer and removed since", 1),
    (reuse_the_id_of_a_refused_row, "refused by the sealer, and a row with its id is sealed", 1),
    (reuse_the_id_of_an_accepted_incident, "was refused by the sealer and removed since", 1),
    (forge_the_last_possible_seal, "(seal 9223372036854775807): the seal is not what", 1),
    (forge_the_next_seal, "(seal 11): the seal is not what the sealer wrote", 1),
    (forge_metadata('{"a": 1e5000}'), "(not sealed): not written by Continuity", 1),
    (forge_metadata("{}"), "(not sealed): not written by Continuity", 1),
    (delete_the_checkpoints, "no checkpoint", 1),
    (delete_the_checkpoints_and_go_on, "the checkpoints were missing when seal 12", 1),
    (delete_the_newest_checkpoint, "head.json is missing", 1),
    (delete_past_checkpoints, "checkpoints.jsonl: checkpoint 1 is missing", 1),
    (restore_an_old_database, "(seal 10): it differs from the head in a checkpoint", 1),
    (repeat_a_cut_that_a_restore_undid, "up to seal 14, which this chain does not have", 1),
    (repeat_a_cut_once_the_chain_is_longer, "seals 1 to 14: they are missing from the chain", 1),
    (repeat_a_cut_that_was_not_sealed_yet, "up to seal 14, which this chain does not have", 1),
    (repeat_a_cut_with_its_seals, "seal 11: the archived chain differs from a checkpoint", 1),
    (
        repeat_a_cut_with_its_seals_and_go_on,
        "seal 11: the archived chain differs from a checkpoint",
        1,
    ),
    (leave_rows_unsealed, "1 rows are over a minute old and not sealed", 1),
    (set_the_clock_back, "1 rows are over a minute old and not sealed", 1),
    (set_the_clock_back_while_sealing, "The audit log is intact: 12 sealed rows", 0),
]
ON_POSTGRESQL: list[tuple[Callable[[Log], None], str, int]] = [
    (edit_into_duplicate_keys, '(seal 5): the row was edited (the key "tool" occurs twice)', 1),
    (edit_into_a_long_fraction, "(seal 11): the row was edited", 1),
    (edit_the_era, "(seal 5): the row was edited", 1),
]
ON_SQLITE: list[tuple[Callable[[Log], None], str, int]] = [
    (edit_into_duplicate_keys, '(seal 5): the row was edited (the key "tool" occurs twice)', 1),
    (edit_into_a_long_fraction, "(seal 11): the row was edited", 1),
    (edit_into_escaped_keys, "(seal 5): the row was edited", 1),
    (edit_the_storage_class, "(seal 5): the row was edited", 1),
    (forge_metadata('{"a": NaN}'), "(not sealed): not written by Continuity", 1),
    (forge_metadata('{"a": -Infinity}'), "(not sealed): not written by Continuity", 1),
    (forge_metadata('{"a": '), "(not sealed): not written by Continuity", 1),
    (forge_metadata("[" * 200_000), "(not sealed): not written by Continuity", 1),
    (insert_undecodable_text, "(not sealed): not written by Continuity", 1),
]


TABLE = ATTACKS + (ON_POSTGRESQL if POSTGRESQL else ON_SQLITE)


@pytest.mark.parametrize(
    ("attack_log", "answer", "exit_status"),
    TABLE,
    ids=[attack_log.__name__ for attack_log, _, _ in TABLE],
)
def test_an_attack_is_answered(
    log: Log, attack_log: Callable[[Log], None], answer: str, exit_status: int
) -> None:
    attack_log(log)
    status, output = verify_audit()
    assert answer in output
    assert status == exit_status


_ESCAPE = "chr(27)" if POSTGRESQL else "CAST(x'1bff' AS TEXT)"  # and a byte that is not UTF-8
TEXTS = {
    "of a row": (f"UPDATE {{rows}} SET actor = {_ESCAPE} WHERE id = %(id)s", "by ⟨ESC"),
    "of a row, too long": ("UPDATE {rows} SET actor = %(long)s WHERE id = %(id)s", "⟨shortened; "),
    "in place of a number": (
        f"UPDATE {{seals}} SET entry_id = {_ESCAPE} WHERE position = 5",
        "row ⟨ESC",
    ),
}


@pytest.mark.parametrize("which", list(TEXTS)[:1] if POSTGRESQL else TEXTS)
def test_a_forged_text_is_printed_in_visible_characters(log: Log, which: str) -> None:
    statement, shown = TEXTS[which]
    attack(statement, id=log.ids[4], long="x" * 10_000)
    printed = BytesIO()
    out = TextIOWrapper(printed, encoding="utf-8", errors="strict", write_through=True)
    with pytest.raises(CommandError, match="NOT intact"):
        call_command("verify_audit", stdout=out)
    text = printed.getvalue().decode()
    assert shown in text
    assert "\x1b" not in text
    assert len(text) < 2000


@pytest.mark.parametrize("column", ["entry_id", "mac"])
def test_a_row_whose_id_or_mac_a_forged_seal_has_is_sealed_once_that_is_removed(
    log: Log, column: str
) -> None:
    record(an_event(77))
    newest = AuditEntry.objects.latest("created_at")
    attack(
        "INSERT INTO {seals} (position, entry_id, mac, prev, hash)"
        " VALUES (-1, %(entry_id)s, %(mac)s, '', '')",
        entry_id=newest.id if column == "entry_id" else -99,
        mac=newest.mac if column == "mac" else "x",
    )
    log.write(2)
    sealed = AuditSeal.objects.filter(position__gt=0)
    assert not sealed.filter(entry_id=newest.id).exists()
    assert sealed.count() == 10 + 2 + 1  # and the refusal
    assert "seal -1: not a position of the chain" in verify_audit()[1]
    attack("DELETE FROM {seals} WHERE position = -1")
    log.sealer.look_back()
    assert sealed.filter(entry_id=newest.id).exists()


def test_a_process_records_a_limited_number_of_refusals(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decisions.audit.sealer.MAX_REFUSALS", 2)
    for number in range(4):
        attack(_FORGE, id=log.ids[0], new=log.ids[-1] + 5 + number)
    log.seal()
    refusals = AuditEntry.objects.filter(action="audit.row_refused")
    assert refusals.count() == 2
    assert "NOT intact: 4 faults" in verify_audit()[1]


def test_a_row_that_stays_after_its_acceptance_is_refused_once_more(log: Log) -> None:
    """And not each time that the sealer reads the acceptance again."""
    attack(_FORGE, id=log.ids[0], new=log.ids[-1] + 5)
    log.seal()
    accept_incidents(reason="a drill", actor="t")
    refusals = AuditEntry.objects.filter(action="audit.row_refused")
    for _ in range(3):
        log.seal()
        log.sealer.look_back()
    assert refusals.count() == 2


def test_a_sealer_records_refusals_anew_after_an_acceptance_that_another_one_sealed(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decisions.audit.sealer.MAX_REFUSALS", 1)
    forged = log.ids[-1] + 5
    attack(_FORGE, id=log.ids[0], new=forged)
    log.seal()
    accept_incidents(reason="a drill", actor="t")
    attack("DELETE FROM {rows} WHERE id = %(new)s", new=forged)
    Sealer().seal_all()
    log.write()
    refusals = AuditEntry.objects.filter(action="audit.row_refused")
    for number in (forged, forged + 50):
        attack(_FORGE, id=log.ids[0], new=number)
        log.sealer.look_back()
        assert [row.resource_id for row in refusals.all()] == [str(forged)] * 2


REFUSED = [
    '{"a": NaN}',
    '{"a": Infinity}',
    '{"a": ',
    '{"a": "\\u0000"}' if POSTGRESQL else "'x'",
]


@pytest.mark.parametrize("text", REFUSED)
def test_the_database_refuses_metadata_that_is_not_json(log: Log, text: str) -> None:
    with pytest.raises(DatabaseError), transaction.atomic():
        attack(_EDIT_TEXT, id=log.ids[4], text=text)


@pytest.mark.skipif(not POSTGRESQL, reason="SQLite stores the text")
def test_postgresql_keeps_the_last_of_duplicate_keys(log: Log) -> None:
    attack(_EDIT_TEXT, id=log.ids[4], text='{"tool": "echo", "tool": "bash.exec", "n": 4}')
    assert AuditEntry.objects.get(id=log.ids[4]).metadata == {"tool": "bash.exec", "n": 4}
    assert verify_audit()[0] == 0


def test_a_row_that_cannot_be_read_hides_no_other_from_readers(log: Log) -> None:
    forge_metadata('{"a": 1e5000}')(log)
    auditor = Principal("local", "ten_1", "ws_1", frozenset({"audit:read"}), "local")
    page = list_audit_entries(principal=auditor)["items"]
    assert len(page) == 10 + 2 + 1
    assert [set(row["metadata"]) for row in page].count({"unreadable"}) == 1
    json.dumps(page, allow_nan=False)
    assert len(list(audit_records(AuditEntry.objects.all()))) == 10 + 2 + 1 + 1  # and the refusal


def test_an_operator_accepts_incidents_but_no_later_ones(log: Log) -> None:
    insert_far_ahead(log)
    delete_the_checkpoints_and_go_on(log)
    assert verify_audit()[0] == 1
    status, output = verify_audit("--accept-incidents", "a drill on 23 November")
    assert (status, "Accepted: 2 incidents." in output) == (0, True)
    log.seal()
    assert verify_audit()[0] == 0
    delete_the_checkpoints_and_go_on(log)
    assert verify_audit()[0] == 1


def test_an_operator_accepts_an_older_database_with_a_reason(log: Log) -> None:
    restore_an_old_database(log)
    assert verify_audit()[0] == 1
    with pytest.raises(CommandError, match="give the reason"):
        call_command("verify_audit", "--accept-incidents", " ")
    status, output = verify_audit("--accept-incidents", "restored the backup of Monday")
    assert (status, "The previous checkpoints are in" in output) == (0, True)
    assert len(list(checkpoints().glob("replaced-*/head.json"))) == 1
    log.write()
    assert verify_audit()[0] == 0


def test_no_checkpoint_moves_before_the_acceptance_is_recorded(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete_past_checkpoints(log)
    before = (checkpoints() / "head.json").read_text()

    def fail(*events: AuditEvent) -> None:
        raise DatabaseError("disk full")

    monkeypatch.setattr("decisions.audit.incidents.record", fail)
    with pytest.raises(DatabaseError):
        verify_audit("--accept-incidents", "a drill")
    assert (checkpoints() / "head.json").read_text() == before
    assert not list(checkpoints().glob("replaced-*"))


def test_an_acceptance_whose_checkpoints_cannot_be_replaced_fails(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete_past_checkpoints(log)

    def fail(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", fail)
        status, output = verify_audit("--accept-incidents", "a drill")
    assert (status, "the checkpoints were not replaced" in output) == (1, True)
    status, output = verify_audit("--accept-incidents", "a drill again")
    assert (status, "Accepted: 0 incidents." in output) == (0, True)


def test_an_acceptance_without_checkpoints_records_the_new_ones(log: Log) -> None:
    insert_far_ahead(log)
    delete_the_checkpoints(log)
    status, output = verify_audit("--accept-incidents", "the home of this machine was lost")
    assert output.startswith(
        "Accepted: 1 incident.\nNew checkpoints were started; there were none."
    )
    assert status == 0
    details = AuditEntry.objects.get(action="audit.incidents_accepted").metadata
    assert details["newCheckpoints"] is True


def test_checkpoints_are_replaced_under_one_lock(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sealer that finds none in between records that they are missing."""
    delete_past_checkpoints(log)
    found, flock = list[bool](), fcntl.flock

    def look_and_lock(lock: IO[str], operation: int) -> None:
        found.append((checkpoints() / "head.json").exists())
        flock(lock, operation)

    monkeypatch.setattr("decisions.audit.checkpoints.fcntl.flock", look_and_lock)
    verify_audit("--accept-incidents", "a drill")
    assert found == [True]


def test_two_acceptances_within_a_second_keep_the_checkpoints_of_both(log: Log) -> None:
    for _ in range(2):
        (checkpoints() / "checkpoints.jsonl").write_text("nonsense")
        verify_audit("--accept-incidents", "a drill")
    assert len(list(checkpoints().glob("replaced-*/head.json"))) == 2


def test_accepting_incidents_accepts_no_other_fault(log: Log) -> None:
    edit(log)
    assert verify_audit("--accept-incidents", "no reason")[0] == 1


def test_an_operator_accepts_the_gap_of_a_forged_seal_that_was_removed(log: Log) -> None:
    forge_the_next_seal(log)
    attack("DELETE FROM {seals} WHERE position = 11")
    status, output = verify_audit()
    assert (status, "seal 11: it is missing from the chain" in output) == (1, True)
    status, output = verify_audit("--accept-incidents", "a forged seal was removed")
    assert (status, "Accepted: 0 incidents, 1 gap of forged seals." in output) == (0, True)
    log.write()
    assert verify_audit()[0] == 0
    details = AuditEntry.objects.get(action="audit.incidents_accepted").metadata
    assert details["gaps"] == [[11, 11]]


@pytest.mark.skipif(POSTGRESQL, reason="PostgreSQL stores no such text")
def test_a_seal_beside_a_gap_whose_text_cannot_be_read_is_no_link(log: Log) -> None:
    forge_the_next_seal(log)
    attack(
        "DELETE FROM {seals} WHERE position = 11",
        "UPDATE {seals} SET hash = CAST(x'ff41' AS TEXT) WHERE position = 10",
    )
    status, output = verify_audit("--accept-incidents", "a forged seal was removed")
    assert (status, "of forged seals" in output) == (1, False)
    assert "(seal 10): the seal is not what the sealer wrote" in output


@pytest.mark.skipif(POSTGRESQL, reason="PostgreSQL stores no such text")
def test_copies_of_a_seal_whose_text_cannot_be_read_are_reported(log: Log) -> None:
    """The owner of the database can replace a table by one without its constraints."""
    attack(
        "ALTER TABLE {seals} RENAME TO former_seals",
        "CREATE TABLE {seals} AS SELECT * FROM former_seals",
        "UPDATE {seals} SET mac = CAST(x'ff41' AS TEXT) WHERE position IN (4, 5)",
        changes_rows=False,
    )
    status, output = verify_audit()
    assert status == 1
    assert f"rows {log.ids[3]} and {log.ids[4]}: one is a copy of the other" in output


@pytest.mark.parametrize("gap", [(10, 10), (11, 11), (12, 12), (10, 11)])
def test_accepting_incidents_accepts_no_gap_of_a_removed_row(
    log: Log, gap: tuple[int, int]
) -> None:
    forge_the_next_seal(log)
    attack("DELETE FROM {seals} WHERE position = 11")
    verify_audit("--accept-incidents", "a forged seal was removed")
    log.write(3)
    remove_with_seals(*gap)
    for _ in range(2):
        status, output = verify_audit("--accept-incidents", "again")
        assert "of forged seals" not in output
        assert status == (0 if gap == (11, 11) else 1)


def test_a_genuine_seal_that_was_overwritten_and_removed_is_not_accepted(log: Log) -> None:
    attack("UPDATE {seals} SET hash = 'x' WHERE position = 10")
    log.write(2)  # the sealer goes on after seal 9
    attack(
        "DELETE FROM {rows} WHERE id = %(id)s",
        "DELETE FROM {seals} WHERE position = 10",
        id=log.ids[9],
    )
    for _ in range(2):  # the first acceptance starts new checkpoints
        assert verify_audit("--accept-incidents", "a forged seal was removed")[0] == 1
