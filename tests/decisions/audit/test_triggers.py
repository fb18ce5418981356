# ruff: noqa: S608  (changes are plain SQL)
"""`verify_audit` and the health checks find triggers and rules of the audit tables that are not
those of Continuity.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from runs.operations.health.checks import check_audit
from runs.operations.health.status import describe_audit_fault, read_installation_status

_FUNCTION, _RETURNS = "CREATE OR REPLACE FUNCTION", "RETURNS trigger LANGUAGE plpgsql AS"
_EACH = "FOR EACH ROW EXECUTE FUNCTION"
ROWS, SEALS = "decisions_auditentry", "decisions_auditseal"
POSTGRESQL = [
    (
        [f"CREATE RULE silence AS ON INSERT TO {ROWS} DO INSTEAD NOTHING"],
        f"{ROWS}: it has the rule",
    ),
    (
        [
            f"{_FUNCTION} nothing() {_RETURNS} 'BEGIN RETURN NULL; END'",
            f"CREATE TRIGGER silence BEFORE INSERT ON {ROWS} {_EACH} nothing()",
        ],
        f"{ROWS}: the trigger silence is not Continuity's: CREATE TRIGGER silence BEFORE INSERT",
    ),
    (
        [f"ALTER TABLE {ROWS} DISABLE TRIGGER audit_no_change"],
        f"{ROWS}: the trigger audit_no_change is disabled",
    ),
    (
        [f"ALTER TABLE {SEALS} DISABLE TRIGGER ALL"],
        f"{SEALS}: the trigger seals_no_change is disabled",
    ),
    (
        [f"ALTER TABLE {SEALS} ENABLE REPLICA TRIGGER seals_no_truncate"],
        f"{SEALS}: the trigger seals_no_truncate is disabled",
    ),
    (
        [f"DROP TRIGGER audit_no_truncate ON {ROWS}"],
        f"{ROWS}: the trigger audit_no_truncate is missing",
    ),
    (
        [f"{_FUNCTION} audit_append_only() {_RETURNS} 'BEGIN RETURN OLD; END'"],
        f"{ROWS}: the trigger audit_no_change was changed",
    ),
    (
        [
            f"DROP TRIGGER audit_no_change ON {ROWS}",
            f"CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON {ROWS} FOR EACH ROW"
            " WHEN (OLD.id < 0) EXECUTE FUNCTION audit_append_only()",
        ],
        f"{ROWS}: the trigger audit_no_change was changed",
    ),
    ([f"ALTER TABLE {ROWS} ENABLE ROW LEVEL SECURITY"], f"{ROWS}: it has row-level security"),
    (
        ["SET LOCAL session_replication_role = replica"],
        f"{SEALS}: session_replication_role lifts its triggers",
    ),
]
SQLITE = [
    (
        [f"CREATE TRIGGER silence BEFORE INSERT ON {ROWS} BEGIN SELECT RAISE(IGNORE); END"],
        f"{ROWS}: the trigger silence is not Continuity's: CREATE TRIGGER silence BEFORE INSERT",
    ),
    (
        [f"CREATE TRIGGER silence BEFORE INSERT ON {SEALS.upper()} BEGIN SELECT 1; END"],
        f"{SEALS}: the trigger silence is not Continuity's",
    ),
    (["DROP TRIGGER audit_no_delete"], f"{ROWS}: the trigger audit_no_delete is missing"),
    (
        [
            "DROP TRIGGER seals_no_update",
            f"CREATE TRIGGER seals_no_update BEFORE UPDATE ON {SEALS} WHEN OLD.position < 0"
            " BEGIN SELECT RAISE(ABORT, 'audit seals are append-only'); END",
        ],
        f"{SEALS}: the trigger seals_no_update was changed",
    ),
    (
        [f"ALTER TABLE {SEALS} RENAME TO moved", f"CREATE VIEW {SEALS} AS SELECT * FROM moved"],
        f"{SEALS}: it is not a table",
    ),
    (
        [
            "PRAGMA writable_schema = ON",
            'UPDATE sqlite_master SET sql = replace(sql, \'one_seal_per_mac" UNIQUE ("mac")\','
            ' \'one_seal_per_mac" UNIQUE ("mac") ON CONFLICT IGNORE\')'
            f" WHERE name = '{SEALS}'",
            "PRAGMA writable_schema = OFF",
        ],
        f"{SEALS}: it has an ON CONFLICT clause",
    ),
]
CHANGES = POSTGRESQL if connection.vendor == "postgresql" else SQLITE


@pytest.fixture(autouse=True)
def no_checkpoints(db: None) -> Iterator[None]:
    """Remove the checkpoints of other tests' chains."""
    folder = Path(settings.CONTINUITY_HOME) / "audit"
    shutil.rmtree(folder, ignore_errors=True)
    yield
    shutil.rmtree(folder, ignore_errors=True)


def execute(statements: list[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_the_migrated_database_has_no_other_triggers() -> None:
    out = StringIO()
    call_command("verify_audit", stdout=out)
    assert "intact" in out.getvalue()
    assert describe_audit_fault() is None
    assert read_installation_status().changed_triggers == 0


@pytest.mark.parametrize(
    ("change", "fault"), CHANGES, ids=[f"change {number}" for number in range(len(CHANGES))]
)
def test_a_change_of_the_triggers_is_found(change: list[str], fault: str) -> None:
    execute(change)
    out = StringIO()
    with pytest.raises(CommandError, match="NOT intact") as failed:
        call_command("verify_audit", stdout=out)
    assert failed.value.returncode == 1
    assert fault in out.getvalue()


def test_the_name_of_a_trigger_is_shown_in_visible_characters() -> None:
    named = CHANGES[1] if connection.vendor == "postgresql" else CHANGES[0]
    execute([text.replace("silence", '"\x1b[2J"') for text in named[0]])
    assert "the trigger ⟨ESC⟩[2J is not" in str(describe_audit_fault())
    out = StringIO()
    with pytest.raises(CommandError, match="the trigger ⟨ESC⟩"):
        call_command("verify_audit", stdout=out)
    assert "\x1b" not in out.getvalue()


def test_the_health_checks_report_a_changed_trigger(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = "decisions.audit.checkpoints.checkpoint_folder"
    monkeypatch.setattr(folder, lambda: tmp_path)  # without checkpoints of other tests
    execute(CHANGES[0][0])
    found = check_audit()
    assert found.verdict == "bad"
    assert "decisions_auditentry: " in found.what
    assert "verify_audit" in found.recovery
    assert str(describe_audit_fault()).startswith("The triggers of the audit log were changed")
    assert read_installation_status().changed_triggers == 1
