"""archive_audit moves sealed rows to a file, and loses none wherever it is killed."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, connections, transaction

from decisions.audit import archive as archive_module
from decisions.audit.chain import GENESIS, ChainHead
from decisions.audit.checkpoints import checkpoint_folder, save_head
from decisions.audit.record import AuditEvent, record
from decisions.audit.sealer import Sealer
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, AuditSeal
from tests.support.audit.audit_attacks import attack

OLD = timedelta(days=40)


@pytest.fixture
def sealer(principal: Principal) -> Iterator[Sealer]:
    """Return the sealer of a log with six rows of 40 days ago and three of today, all sealed."""
    folder = Path(settings.CONTINUITY_HOME) / "audit"
    shutil.rmtree(folder, ignore_errors=True)
    sealer = Sealer()
    for number in range(9):
        with pytest.MonkeyPatch.context() as patched:
            if number < 6:
                patched.setattr("decisions.audit.record.datetime", Earlier)
            record(AuditEvent("run.started", "local", "run", f"run_{number}", "ten_1", "ws_1"))
    seal(sealer)
    yield sealer
    shutil.rmtree(folder, ignore_errors=True)


class Earlier(datetime):
    """A clock of 40 days ago."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        """Return the time of 40 days ago."""
        return datetime.now(tz) - OLD


def seal(sealer: Sealer) -> None:
    for _ in range(3):
        sealer.seal_all()


def archive(file: Path, *, before: str | None = None) -> str:
    out = StringIO()
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    call_command("archive_audit", "--before", before or yesterday, str(file), stdout=out)
    return out.getvalue()


def verify(*options: str) -> str:
    out = StringIO()
    call_command("verify_audit", *options, stdout=out)
    return out.getvalue()


def refusal_of(file: Path, **options: str) -> str:
    with pytest.raises(CommandError) as refused:
        archive(file, **options)
    return str(refused.value)


def archived_runs(file: Path) -> list[str]:
    lines = map(json.loads, file.read_text().splitlines())
    return [line["resourceId"] for line in lines if line["type"] == "audit"]


def runs_in_log() -> list[str]:
    rows = AuditEntry.objects.filter(action="run.started").order_by("id")
    return list(rows.values_list("resource_id", flat=True))


def test_old_rows_are_moved_to_a_file_that_verifies_alone(sealer: Sealer, tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    assert "Archived 6 rows, seals 1 to 6, to" in archive(file)
    assert archived_runs(file) == [f"run_{number}" for number in range(6)]
    assert runs_in_log() == ["run_6", "run_7", "run_8"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert "is intact: archive" in verify("--bundle", str(file))
    seal(sealer)
    assert "The audit log is intact: 4 sealed rows" in verify()  # three, and audit.archived
    cut = AuditEntry.objects.get(action="audit.archived").metadata
    assert (cut["position"], cut["rows"], cut["file"]) == (6, 6, "audit.jsonl")


def test_the_log_is_archived_again_later(sealer: Sealer, tmp_path: Path) -> None:
    archive(tmp_path / "one")
    seal(sealer)
    now = datetime.now(UTC).isoformat()
    assert "Archived 3 rows, seals 7 to 9" in archive(tmp_path / "two", before=now)
    seal(sealer)
    assert "is intact: 2 sealed rows" in verify()
    assert "is intact: archive" in verify("--bundle", str(tmp_path / "two"))


@pytest.mark.parametrize(
    ("statements", "fault"),
    [
        (["DELETE FROM {seals} WHERE position = 7"], "seal 7: it is missing from the chain"),
        (["UPDATE {rows} SET actor = 'x' WHERE action = 'audit.archived'"], "the row was edited"),
        (
            [
                "DELETE FROM {rows} WHERE action = 'audit.archived'",
                "DELETE FROM {seals} WHERE position = 10",
            ],
            "seals 1 to 6: they are missing from the chain",
        ),
    ],
)
def test_the_cut_hides_no_other_removal(
    sealer: Sealer, tmp_path: Path, statements: list[str], fault: str
) -> None:
    archive(tmp_path / "file")
    attack(*statements)
    with pytest.raises(CommandError, match="NOT intact"):
        call_command("verify_audit", stdout=(out := StringIO()))
    assert fault in out.getvalue()


def test_a_log_with_an_accepted_gap_is_archived(sealer: Sealer, tmp_path: Path) -> None:
    forged = "INSERT INTO {seals} (position, entry_id, mac, prev, hash)"
    attack(f"{forged} VALUES (10, -99, 'x', '', '')")
    record(AuditEvent("run.started", "local", "run", "run_9", "ten_1", "ws_1"))
    seal(sealer)
    attack("DELETE FROM {seals} WHERE position = 10")
    assert "missing" in refusal_of(tmp_path / "a")
    verify("--accept-incidents", "a forged seal was removed")
    seal(sealer)
    archive(tmp_path / "a", before=datetime.now(UTC).isoformat())
    assert "run_9" in archived_runs(tmp_path / "a")
    verify("--bundle", str(tmp_path / "a"))
    verify()


def archive_all_but_newest(sealer: Sealer, file: Path) -> None:
    """Archive up to seal 9, the head of the first checkpoint."""
    record(AuditEvent("run.started", "local", "run", "run_9", "ten_1", "ws_1"))
    seal(sealer)
    assert "seals 1 to 9" in archive(file, before=datetime.now(UTC).isoformat())
    seal(sealer)


def test_the_archived_head_of_a_checkpoint_is_not_lost(sealer: Sealer, tmp_path: Path) -> None:
    archive_all_but_newest(sealer, tmp_path / "file")
    assert "previous checkpoints" not in verify("--accept-incidents", "a drill")
    (accepted,) = AuditEntry.objects.filter(action="audit.incidents_accepted")
    assert (accepted.metadata["lostHeads"], accepted.metadata["newCheckpoints"]) == ([], False)


@pytest.mark.parametrize("head", [9, 3])
def test_a_home_whose_newest_checkpoint_was_archived_goes_on_with_it(
    sealer: Sealer, tmp_path: Path, caplog: pytest.LogCaptureFixture, head: int
) -> None:
    """As the home of a scheduler that was stopped for long, while another one sealed."""
    head_hash = AuditSeal.objects.get(position=head).hash
    archive_all_but_newest(sealer, tmp_path / "file")
    shutil.rmtree(checkpoint_folder())
    save_head(ChainHead(head, head_hash), next_id=None)
    record(AuditEvent("run.started", "local", "run", "run_10", "ten_1", "ws_1"))
    seal(Sealer())
    assert "not in the audit chain" not in caplog.text
    assert "is intact" in verify()


def test_a_checkpoint_that_differs_from_the_cut_is_lost(
    sealer: Sealer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    archive_all_but_newest(sealer, tmp_path / "file")
    shutil.rmtree(checkpoint_folder())
    save_head(ChainHead(9, "0" * 64), next_id=None)
    record(AuditEvent("run.started", "local", "run", "run_10", "ten_1", "ws_1"))
    seal(Sealer())
    assert "not in the audit chain" in caplog.text
    verify("--accept-incidents", "a drill")
    (accepted,) = AuditEntry.objects.filter(action="audit.incidents_accepted")
    assert accepted.metadata["lostHeads"] == [9]


def test_a_forged_cut_hides_no_removal(sealer: Sealer) -> None:
    head = AuditSeal.objects.get(position=6).hash
    cut = {"position": 0, "hash": GENESIS.hash}
    record(AuditEvent("audit.archived", "local", "audit", "log", "", "", cut))
    seal(sealer)
    attack(
        "UPDATE {rows} SET metadata = %(cut)s WHERE action = 'audit.archived'",
        "DELETE FROM {rows} WHERE id IN (SELECT entry_id FROM {seals} WHERE position <= 6)",
        "DELETE FROM {seals} WHERE position <= 6",
        cut=json.dumps({"position": 6, "hash": head}),
    )
    with pytest.raises(CommandError, match="NOT intact"):
        call_command("verify_audit", stdout=(out := StringIO()))
    assert "seals 1 to 6: they are missing from the chain" in out.getvalue()


def test_a_changed_archive_fails_verification(sealer: Sealer, tmp_path: Path) -> None:
    file = tmp_path / "file"
    archive(file)
    lines = file.read_bytes().splitlines(keepends=True)
    for changed in (
        lines[:3] + lines[4:],
        lines[:-1],
        [*lines[:2], lines[2].replace(b"_1", b"_9")],
    ):
        file.write_bytes(b"".join(changed))
        with pytest.raises(CommandError, match="NOT intact"):
            verify("--bundle", str(file))


def test_what_cannot_be_archived_is_refused(sealer: Sealer, tmp_path: Path) -> None:
    file = tmp_path / "file"
    assert "is not an ISO 8601 time" in refusal_of(file, before="yesterday")
    assert "in the future" in refusal_of(file, before="2999-01-01")
    assert "no sealed rows before" in refusal_of(file, before="2001-01-01")
    assert "cannot be written" in refusal_of(tmp_path / "missing" / "file")
    file.write_text("mine")
    assert "exists already" in refusal_of(file)
    assert file.read_text() == "mine"
    file.unlink()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("decisions.audit.record.datetime", Earlier)
        record(AuditEvent("run.started", "local", "run", "run_x", "ten_1", "ws_1"))
    assert "1 rows before" in refusal_of(file)
    seal(sealer)
    attack("UPDATE {rows} SET actor = 'x' WHERE resource_id = 'run_8'")
    assert "NOT intact" in refusal_of(file)
    assert list(tmp_path.iterdir()) == []
    assert len(runs_in_log()) == 10
    assert not AuditEntry.objects.filter(action="audit.archived").exists()


def refuse(*args: Any, **options: Any) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


def test_a_file_system_without_hard_links_gets_the_archive(
    sealer: Sealer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", refuse)
    assert "Archived 6 rows" in archive(tmp_path / "file")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_file_that_cannot_get_its_name_is_removed(
    sealer: Sealer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    export = archive_module._export

    def export_and_refuse(*args: Any, **options: Any) -> Any:
        exported = export(*args, **options)
        monkeypatch.setattr(Path if step == "replace" else os, step, refuse)
        return exported

    monkeypatch.setattr(archive_module, "_export", export_and_refuse)
    assert "cannot be written: Operation not permitted" in refusal_of(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []
    assert len(runs_in_log()) == 9


def test_a_file_that_appears_during_the_export_is_not_overwritten(
    sealer: Sealer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export, file = archive_module._export, tmp_path / "file"

    def export_late(*args: Any, **options: Any) -> Any:
        file.write_text("mine")
        return export(*args, **options)

    monkeypatch.setattr(archive_module, "_export", export_late)
    assert "exists already" in refusal_of(file)
    assert [(found.name, found.read_text()) for found in tmp_path.iterdir()] == [("file", "mine")]
    assert len(runs_in_log()) == 9


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_before(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what lets the process be killed when it calls this function of the archive."""

    def arrange(patched: pytest.MonkeyPatch) -> None:
        patched.setattr(archive_module, name, lambda *args, **options: kill())

    return arrange


def kill_after_a_batch(patched: pytest.MonkeyPatch) -> None:
    prune_batch, calls = archive_module._prune_batch, list[int]()

    def prune_once(upto: int) -> None:
        if calls:
            kill()
        calls.append(upto)
        prune_batch(upto)

    patched.setattr(archive_module, "_prune_batch", prune_once)


def kill_within_a_batch(patched: pytest.MonkeyPatch) -> None:
    def prune(upto: int) -> None:
        with transaction.atomic(), archive_module._deletion_allowed():
            AuditEntry.objects.all().delete()
            kill()

    patched.setattr(archive_module, "_prune_batch", prune)


def archive_until_killed(file: Path, arrange: Callable[[pytest.MonkeyPatch], None]) -> None:
    connections.close_all()
    child = get_context("fork").Process(target=_archive_in_child, args=(file, arrange))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL


def _archive_in_child(file: Path, arrange: Callable[[pytest.MonkeyPatch], None]) -> None:
    arrange(pytest.MonkeyPatch())
    archive_module.BATCH_SIZE = 2
    yesterday = datetime.now(UTC) - timedelta(days=1)
    archive_module.archive(file, before=yesterday, actor="command:test")


@pytest.mark.parametrize(
    ("arrange", "removed", "has_file"),
    [
        (kill_before("_publish"), 0, False),
        (kill_before("_record_cut"), 0, True),
        (kill_before("_prune"), 0, True),
        (kill_within_a_batch, 0, True),
        (kill_after_a_batch, 2, True),
    ],
    ids=["before the name", "before the cut", "before removal", "in a batch", "after a batch"],
)
def test_no_row_is_lost_when_the_process_is_killed(
    sealer: Sealer,
    tmp_path: Path,
    arrange: Callable[[pytest.MonkeyPatch], None],
    removed: int,
    has_file: bool,
) -> None:
    killed, again = tmp_path / "killed", tmp_path / "again"
    archive_until_killed(killed, arrange)
    assert runs_in_log() == [f"run_{number}" for number in range(removed, 9)]
    assert killed.exists() is has_file
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        AuditEntry.objects.all().delete()
    seal(sealer)
    assert "The audit log is intact" in verify()
    if has_file:
        assert archived_runs(killed) == [f"run_{number}" for number in range(6)]
        assert "is intact: archive" in verify("--bundle", str(killed))
    archive(again)
    assert archived_runs(again) == [f"run_{number}" for number in range(removed, 6)]
    assert AuditSeal.objects.order_by("position")[0].position == 7
    seal(sealer)
    assert "Archived and not removed" not in verify()
    connection.close()
