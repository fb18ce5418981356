# ruff: noqa: S608  (attacks are plain SQL)
"""verify_audit detects every change that a user with the database owner's rights makes to the
log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings

from decisions.audit import verify
from decisions.audit.chain import ChainHead, seals_after
from decisions.audit.record import AuditEvent, record, record_all
from decisions.audit.sealer import Sealer
from decisions.audit.verify import AuditReport, check_audit_log
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, AuditSeal
from tests.support.audit.audit_attacks import COPIED, attack


@pytest.fixture(autouse=True)
def fresh_checkpoints(principal: Principal) -> Iterator[None]:
    """Remove the checkpoints of other tests' chains."""
    shutil.rmtree(Path(settings.CONTINUITY_HOME) / "audit", ignore_errors=True)
    yield
    shutil.rmtree(Path(settings.CONTINUITY_HOME) / "audit", ignore_errors=True)


@pytest.fixture
def sealed(fresh_checkpoints: None) -> list[int]:
    """Create ten sealed rows; return their ids."""
    for number in range(10):
        record(
            AuditEvent(
                "run.started", "local", "run", f"run_{number}", "ten_1", "ws_1", {"n": number}
            )
        )
    Sealer().seal_all()
    return list(AuditEntry.objects.order_by("id").values_list("id", flat=True))


def only_fault(report: AuditReport) -> str:
    """Return the only fault of the report."""
    assert report.faults == 1, report.messages
    return report.messages[0]


@pytest.mark.parametrize("processes", [1, 3, 8])
def test_several_processes_find_the_same_faults_as_one(
    processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "BATCH_SIZE", 3)
    record_all([AuditEvent("run.started", "local", "run", f"run_{n}", "t", "w") for n in range(20)])
    Sealer().seal_all()
    assert check_audit_log(processes) == AuditReport(sealed=20, checkpoints=1)
    first = AuditEntry.objects.order_by("id")[0].id
    attack(
        "DELETE FROM {seals} WHERE position = 7",  # last of a part, first of one, amid one
        "DELETE FROM {rows} WHERE id = %(id)s",
        id=first + 19,
    )
    report = check_audit_log(processes)
    assert (report.sealed, report.unsealed, report.faults) == (19, 1, 2)
    assert report.messages == [
        "seal 7: it is missing from the chain",
        f"row {first + 19} (seal 20): the row was removed",
    ]


@pytest.mark.parametrize("function_name", ["head_of_chain", "read_checkpoints"])
def test_rows_that_are_sealed_between_two_reads_are_no_fault(
    sealed: list[int], function_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(verify, function_name)

    def seal_one_more_and_read() -> object:
        record(AuditEvent("run.ended", "local", "run", "run_late", "ten_1", "ws_1"))
        Sealer().seal_all()
        return original()

    monkeypatch.setattr(verify, function_name, seal_one_more_and_read)
    report = check_audit_log()
    assert (report.sealed, report.messages) == (11, [])


def test_an_empty_log_is_whole(principal: Principal) -> None:
    assert check_audit_log() == AuditReport()


@pytest.mark.parametrize(
    "change",
    [
        "actor = 'x'",
        "action = 'run.ended'",
        "resource_id = 'run_x'",
        "resource_type = 'x'",
        "tenant_id = 'x'",
        "workspace_id = 'x'",
        "metadata = '{\"n\": 40}'",
        "metadata = '[]'",
        "mac = '0'",
        "created_at = '2020-01-01 00:00:00+00:00'",
    ],
)
def test_an_edited_row_is_found(sealed: list[int], change: str) -> None:
    attack("UPDATE {rows} SET " + change + " WHERE id = %(id)s", id=sealed[4])
    message = only_fault(check_audit_log())
    assert message.startswith(f"row {sealed[4]} (seal 5): the row was edited")


def test_a_row_edited_by_a_writer_with_the_key_is_found(sealed: list[int]) -> None:
    """Its MAC is genuine, but the chain holds another one."""
    record(AuditEvent("run.started", "local", "run", "run_other", "ten_1", "ws_1"))
    other = AuditEntry.objects.latest("id").id
    source = "(SELECT {} FROM {rows} WHERE id = %(other)s)"
    sets = ", ".join(f"{name} = {source.replace('{}', name)}" for name in COPIED.split(", "))
    attack(
        "UPDATE {rows} SET " + sets + " WHERE id = %(id)s",
        "DELETE FROM {rows} WHERE id = %(other)s",
        id=sealed[4],
        other=other,
    )
    assert "the row was replaced by another" in only_fault(check_audit_log())


def test_swapped_seals_are_found(sealed: list[int]) -> None:
    attack(
        "UPDATE {seals} SET position = -1 WHERE position = 3",
        "UPDATE {seals} SET position = 3 WHERE position = 7",
        "UPDATE {seals} SET position = 7 WHERE position = -1",
    )
    report = check_audit_log()
    assert report.messages[0].startswith(
        f"row {sealed[6]} (seal 3): the seal is not what the sealer"
    )


@pytest.mark.parametrize("column", ["hash", "prev", "mac"])
def test_an_edited_seal_is_found(sealed: list[int], column: str) -> None:
    attack("UPDATE {seals} SET " + column + " = 'f' WHERE position = 4")
    messages = check_audit_log().messages
    assert messages[0].startswith(
        f"row {sealed[3]} (seal 4): the seal is not what the sealer wrote"
    )


def test_a_row_inserted_among_the_old_ones_is_found(sealed: list[int]) -> None:
    attack(
        "INSERT INTO {rows} (id, {copied}) SELECT -5, {forged} FROM {rows} WHERE id = %(id)s",
        id=sealed[0],
    )
    assert only_fault(check_audit_log()).startswith("row -5 (not sealed)")


def test_the_key_of_another_installation_finds_every_row_foreign(sealed: list[int]) -> None:
    with override_settings(CONTINUITY_SECRET_KEYS=["n" * 40]):
        assert check_audit_log().faults == 20 + 2  # and the two files of checkpoints
    with override_settings(CONTINUITY_SECRET_KEYS=["n" * 40, *settings.CONTINUITY_SECRET_KEYS]):
        assert check_audit_log().faults == 0


def test_an_unreadable_checkpoint_is_reported(sealed: list[int]) -> None:
    (Path(settings.CONTINUITY_HOME) / "audit" / "checkpoints.jsonl").write_text("nonsense\n")
    assert "a checkpoint cannot be read: 'nonsense'" in check_audit_log().messages[0]


def test_the_command_prints_the_faults(sealed: list[int]) -> None:
    out = StringIO()
    call_command("verify_audit", stdout=out)
    assert "The audit log is intact: 10 sealed rows in one chain, 1 checkpoint," in out.getvalue()
    attack("DELETE FROM {rows} WHERE id = %(id)s", id=sealed[4])
    with pytest.raises(CommandError, match=r"NOT intact: 1 fault; the first: row .* was removed"):
        call_command("verify_audit", stdout=out)


def test_rows_that_are_not_sealed_are_reported(sealed: list[int]) -> None:
    record(AuditEvent("run.started", "local", "run", "run_new", "ten_1", "ws_1"))
    out = StringIO()
    call_command("verify_audit", stdout=out)
    assert "Not sealed yet: 1, the oldest for" in out.getvalue()


def insert_link(position: int, entry: AuditEntry) -> str:
    """Return the SQL that inserts a genuine seal of an entry after the seal before the position."""
    head = ChainHead(position - 1, AuditSeal.objects.get(position=position - 1).hash)
    (link,) = seals_after(head, [(entry.id, entry.mac)])
    values = f"{position}, {entry.id}, '{entry.mac}', '{link.prev}', '{link.hash}'"
    return f"INSERT INTO {{seals}} (position, entry_id, mac, prev, hash) VALUES ({values})"


def test_seals_of_two_genuine_chains_are_found(sealed: list[int]) -> None:
    """Each seal is what a sealer wrote, but seal 9 followed another seal 8."""
    record(AuditEvent("run.started", "local", "run", "run_other", "ten_1", "ws_1"))
    attack(
        "DELETE FROM {rows} WHERE id = %(id)s",
        "DELETE FROM {seals} WHERE position = 8",
        insert_link(8, AuditEntry.objects.latest("id")),
        id=sealed[7],
    )
    assert only_fault(check_audit_log()) == f"row {sealed[8]} (seal 9): it does not follow seal 8"


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite cannot drop a constraint")
def test_a_copy_of_a_row_with_a_genuine_seal_is_found(sealed: list[int]) -> None:
    attack(
        "ALTER TABLE {seals} DROP CONSTRAINT one_seal_per_mac",
        "INSERT INTO {rows} ({copied}) SELECT {copied} FROM {rows} WHERE id = %(id)s",
        id=sealed[4],
    )
    copy = AuditEntry.objects.latest("id")
    try:
        attack(insert_link(11, copy))
        message = only_fault(check_audit_log())
    finally:
        attack("DELETE FROM {seals} WHERE position = 11")
        attack("ALTER TABLE {seals} ADD CONSTRAINT one_seal_per_mac UNIQUE (mac)")
    assert message == f"rows {sealed[4]} and {copy.id}: one is a copy of the other"


def test_a_checkpoint_that_the_chain_lost_is_kept_when_sealing_continues(
    sealed: list[int],
) -> None:
    """The newest checkpoint, 12, is replaced by 14; the file of past ones begins with 10."""
    for count in (2, 3):
        for number in range(count):
            record(AuditEvent("run.ended", "local", "run", f"run_{number}", "ten_1", "ws_1"))
        Sealer().seal_all()
        if count == 2:
            attack(
                "DELETE FROM {rows} WHERE id = %(id)s",
                "DELETE FROM {seals} WHERE position = 12",
                id=AuditEntry.objects.latest("id").id,
            )
    assert AuditSeal.objects.count() == 14
    assert "(seal 12): it differs from the head in a checkpoint" in only_fault(check_audit_log())
