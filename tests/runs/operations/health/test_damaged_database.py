"""Reports of a damaged database: the damage and `restore` are named."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from django.db import DatabaseError, connection, transaction

from decisions.audit import checkpoints
from decisions.audit.chain import ChainHead
from runs.operations.health import checks
from runs.operations.home import prepare
from runs.operations.home.damage import damage_message
from runs.operations.home.errors import DatabaseDamaged

ON_POSTGRESQL = connection.vendor == "postgresql"
REASON = "invalid page in block 7 of relation base/16384/16405"


def read_damaged_page() -> list[str]:
    """Fail as a read of a page with a wrong checksum does."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION '{REASON}' USING ERRCODE = 'XX001'; END $$")
    return []


@pytest.mark.django_db
@pytest.mark.skipif(not ON_POSTGRESQL, reason="PostgreSQL only: its error codes")
def test_a_damaged_page_of_postgresql_is_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (checks, prepare):
        monkeypatch.setattr(module, "unapplied_migrations", read_damaged_page)
    monkeypatch.setattr(prepare, "_checked_databases", set())
    with pytest.raises(DatabaseDamaged, match=f"is damaged: {REASON}.*`manage.py restore DIR"):
        prepare.check_migrations()
    result = checks.check_database()
    assert result.verdict == "bad"
    assert REASON in result.what
    assert "`manage.py restore DIR --force`" in result.recovery


@pytest.mark.django_db
def test_an_error_of_an_undamaged_database_is_not_called_damage() -> None:
    with pytest.raises(DatabaseError) as failure, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM no_such_table")
    assert damage_message(failure.value) is None


@pytest.mark.django_db
@pytest.mark.skipif(ON_POSTGRESQL, reason="SQLite only: its error codes")
@pytest.mark.parametrize(
    "code",
    [
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_SHMSIZE,  # a full disk, too
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
    ],
)
def test_a_full_disk_or_missing_permissions_are_not_called_damage(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int
) -> None:
    def fail(*_: object, **__: object) -> sqlite3.Connection:
        raise cause

    cause = sqlite3.OperationalError("disk I/O error")
    cause.sqlite_errorcode = code
    error = DatabaseError("disk I/O error")
    error.__cause__ = cause
    (tmp_path / "file").touch()
    monkeypatch.setitem(connection.settings_dict, "NAME", str(tmp_path / "file"))
    monkeypatch.setattr("runs.operations.home.damage.sqlite3.connect", fail)
    assert damage_message(error) is None


@pytest.mark.django_db
def test_doctor_reports_an_audit_log_that_has_lost_its_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SQLite drops the end of a damaged write-ahead log without an error."""
    monkeypatch.setattr(checkpoints, "checkpoint_folder", lambda: tmp_path)
    assert checks.check_audit().verdict == "ok"
    checkpoints.save_head(ChainHead(10**6, "a" * 64), next_id=10**6)
    result = checks.check_audit()
    assert result.verdict == "bad"
    assert "rows were lost" in result.what
    assert "restore" in result.recovery
