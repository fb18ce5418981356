"""Errors of the database are classified by what they mean, not by their class."""

from __future__ import annotations

import ast
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import Error, InternalError, OperationalError, connection, transaction

from decisions.foundation.database.faults import Fault, fault_of, is_temporary

ROOT = Path(__file__).parents[4]
# Of the driver and of Django; IntegrityError may be caught alone: "another process was first".
CLASSES = {
    "DataError",
    "DatabaseError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
}
MEANINGS = {
    "08006": Fault.UNAVAILABLE,  # connection failure
    "25006": Fault.READ_ONLY,  # read-only, as an InternalError
    "25P03": Fault.UNAVAILABLE,
    "25P04": Fault.UNAVAILABLE,
    "26000": Fault.UNAVAILABLE,
    "53100": Fault.UNAVAILABLE,  # the disk is full
    "53300": Fault.UNAVAILABLE,  # too many connections
    "57P01": Fault.UNAVAILABLE,  # shutdown
    "57P03": Fault.UNAVAILABLE,  # starting
    "XX000": Fault.UNAVAILABLE,
    "55P03": Fault.LOCKED,
    "57014": Fault.LOCKED,
    "40001": Fault.CONFLICT,
    "40P01": Fault.CONFLICT,
    "22001": Fault.REFUSED,  # too long for its column
    "23505": Fault.REFUSED,  # unique
    "42P01": Fault.DEFECT,  # no such table
    "42501": Fault.DEFECT,  # no permission
    "25P02": Fault.DEFECT,  # a statement after a failed one in its transaction
}


@pytest.mark.parametrize("sqlstate", MEANINGS)
def test_the_sqlstate_says_what_an_error_means(sqlstate: str) -> None:
    raised = psycopg.errors.lookup(sqlstate)("told by the server")
    wrapped = InternalError("told by the server")
    wrapped.__cause__ = raised
    assert fault_of(raised) == fault_of(wrapped) == MEANINGS[sqlstate]
    assert is_temporary(wrapped) == (MEANINGS[sqlstate] not in (Fault.REFUSED, Fault.DEFECT))


def test_an_error_of_the_driver_alone_is_an_outage() -> None:
    assert fault_of(psycopg.OperationalError("connection refused")) == Fault.UNAVAILABLE
    assert fault_of(psycopg.InterfaceError("the connection is closed")) == Fault.UNAVAILABLE
    assert fault_of(psycopg.DataError("a NUL character")) == Fault.REFUSED
    assert fault_of(psycopg.ProgrammingError("2 placeholders, 1 parameter")) == Fault.DEFECT


@pytest.mark.parametrize("error", [ValueError("x"), OSError("x"), None])
def test_other_errors_have_no_fault(error: Exception | None) -> None:
    assert fault_of(error) is None
    assert not is_temporary(error)


@pytest.mark.django_db(transaction=True)
def test_errors_of_the_real_database_are_classified() -> None:
    with pytest.raises(Error) as missing, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM no_such_table")
    with pytest.raises(Error) as refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("INSERT INTO runs_worker (id) VALUES ('w')")  # other columns are NOT NULL
    assert (fault_of(missing.value), fault_of(refused.value)) == (Fault.DEFECT, Fault.REFUSED)


def test_a_locked_a_read_only_and_a_missing_sqlite_file_are_temporary(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite3"
    holder = sqlite3.connect(file, timeout=0, isolation_level=None)
    holder.execute("CREATE TABLE t (a)")
    holder.execute("BEGIN IMMEDIATE")
    faults = [
        fault_of(error)
        for uri, sql in (
            (f"file:{file}", "BEGIN IMMEDIATE"),
            (f"file:{file}?mode=ro", "CREATE TABLE u (a)"),
            (f"file:{tmp_path}/none?mode=ro", "SELECT 1"),
        )
        for error in sqlite_errors(uri, sql)
    ]
    holder.close()
    assert faults == [Fault.LOCKED, Fault.READ_ONLY, Fault.UNAVAILABLE]


def sqlite_errors(uri: str, sql: str) -> Iterator[sqlite3.Error]:
    try:
        sqlite3.connect(uri, timeout=0, isolation_level=None, uri=True).execute(sql)
    except sqlite3.Error as error:
        yield error


def test_no_other_module_names_the_classes_of_database_errors() -> None:
    parts = ("config", "decisions", "artifacts", "runners", "runs", "mcp_server")
    files = [file for part in parts for file in (ROOT / part).rglob("*.py")] + [ROOT / "manage.py"]
    found = {
        str(file.relative_to(ROOT))
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if named_by(node) & CLASSES
    }
    assert found == {"decisions/foundation/database/faults.py"}


def named_by(node: ast.AST) -> set[str]:
    if isinstance(node, ast.ImportFrom):
        is_driver = (node.module or "").split(".")[0] in ("django", "psycopg", "sqlite3")
        return {alias.name for alias in node.names} if is_driver else set()
    return {node.attr} if isinstance(node, ast.Attribute) else set()


def test_the_class_alone_decides_only_where_there_is_no_code() -> None:
    assert fault_of(OperationalError("the connection is lost")) == Fault.UNAVAILABLE
    assert fault_of(InternalError("unknown")) == Fault.DEFECT
