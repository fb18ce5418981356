"""Two prepared statements in one transaction without BEGIN and COMMIT."""

from __future__ import annotations

import psycopg
import pytest
from django.db import DataError, OperationalError, connection, transaction

from decisions.foundation.infra.prepared_statements import execute_prepared, in_one_transaction

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="pipelines of PostgreSQL"),
    pytest.mark.usefixtures("principal"),
]
SLOT = "UPDATE runs_slot SET worker_id = %s WHERE number = 0 RETURNING worker_id"


def of_other(sql: str) -> object:
    """Return what another connection reads."""
    settings = connection.settings_dict
    options = {key.lower(): settings[key] for key in ("HOST", "PORT", "USER")}
    with psycopg.connect(dbname=settings["NAME"], autocommit=True, **options) as other:
        row = other.execute(sql).fetchone()
        return None if row is None else row[0]


def owner() -> object:
    return of_other("SELECT worker_id FROM runs_slot WHERE number = 0")


def test_commit_hooks_run_after_the_commit() -> None:
    seen: list[object] = []
    with in_one_transaction():
        assert execute_prepared(SLOT, ["w1"]) == ("w1",)
        transaction.on_commit(lambda: seen.append(owner()))
        assert (owner(), seen) == (None, [])
    assert seen == ["w1"]


def test_a_lock_is_held_until_the_last_statement() -> None:
    free = "SELECT number FROM runs_slot WHERE number = 0 FOR UPDATE SKIP LOCKED"
    with in_one_transaction():
        execute_prepared(free, [])
        assert of_other(free) is None
        execute_prepared("SELECT 1", [])
    assert of_other(free) == 0


def test_an_exception_between_two_statements_rolls_the_first_one_back() -> None:
    @in_one_transaction()
    def fail() -> None:
        execute_prepared(SLOT, ["w1"])
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert owner() is None


def test_an_error_of_a_statement_rolls_back_and_runs_no_hook() -> None:
    seen: list[str] = []

    @in_one_transaction()
    def fail() -> None:
        execute_prepared(SLOT, ["w1"])
        transaction.on_commit(lambda: seen.append("hook"))
        execute_prepared("SELECT 1 / %s::int", [0])

    with pytest.raises(DataError):
        fail()
    assert (owner(), seen) == (None, [])
    assert execute_prepared(SLOT, ["w2"]) == ("w2",)  # the connection is as before


def test_a_connection_that_breaks_between_two_statements_is_replaced() -> None:
    @in_one_transaction()
    def break_connection() -> None:
        row = execute_prepared("SELECT pg_backend_pid()", [])
        assert row is not None
        execute_prepared(SLOT, ["w1"])
        of_other(f"SELECT pg_terminate_backend({int(row[0])}, 5000)")
        execute_prepared("SELECT 1", [])

    with pytest.raises(OperationalError):
        break_connection()
    assert owner() is None
    assert execute_prepared(SLOT, ["w2"]) == ("w2",)
