"""A connection to PostgreSQL that is of no use is replaced before the next statement."""

from __future__ import annotations

from typing import Any, NoReturn

import psycopg
import pytest
from django.db import Error, close_old_connections, connection, transaction

from decisions.foundation.database import base
from decisions.foundation.database.faults import Fault, fault_of

pytestmark = [
    pytest.mark.skipif(connection.vendor != "postgresql", reason="connections to PostgreSQL"),
    pytest.mark.django_db(transaction=True),
]


def backend_pid() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def admin(sql: str) -> Any:
    of_server = {key: connection.settings_dict[key.upper()] for key in ("host", "port", "user")}
    with psycopg.connect(dbname="postgres", autocommit=True, **of_server) as server:
        return server.execute(sql).fetchone()


def test_a_connection_that_the_server_closed_is_replaced_without_an_error() -> None:
    pid = backend_pid()
    admin(f"SELECT pg_terminate_backend({pid}, 5000)")
    assert backend_pid() != pid


def test_a_transaction_begins_on_a_new_connection_too() -> None:
    pid = backend_pid()
    admin(f"SELECT pg_terminate_backend({pid}, 5000)")
    with transaction.atomic():
        assert backend_pid() != pid


def test_a_connection_is_tested_without_a_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    pid = backend_pid()

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise AssertionError("a statement was sent")

    with monkeypatch.context() as silent:
        silent.setattr(connection.connection, "execute", refuse)
        silent.setattr(connection.connection, "cursor", refuse)
        close_old_connections()
        connection.close_if_health_check_failed()
    assert backend_pid() == pid


def test_a_connection_that_refuses_writes_is_replaced_after_the_first() -> None:
    pid = backend_pid()
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    with pytest.raises(Error) as refused, connection.cursor() as cursor:
        cursor.execute("DELETE FROM runs_worker")
    assert fault_of(refused.value) == Fault.READ_ONLY
    assert backend_pid() != pid


def test_a_connection_stays_the_same_within_a_transaction_and_after_a_refused_row() -> None:
    with transaction.atomic():
        pid = backend_pid()
        with pytest.raises(Error), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL transaction_read_only = on; DELETE FROM runs_worker")
        assert backend_pid() == pid
    pid = backend_pid()
    with pytest.raises(Error), connection.cursor() as cursor:
        cursor.execute("INSERT INTO runs_worker (id) VALUES ('w')")
    assert backend_pid() == pid


def test_a_standby_gets_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.close()
    with monkeypatch.context() as demoted:
        demoted.setattr(base, "_is_standby", lambda connection: True)
        with pytest.raises(Error, match="standby") as refused:
            backend_pid()
    assert fault_of(refused.value) == Fault.READ_ONLY
    assert connection.connection is None
    assert backend_pid()
