"""Django's PostgreSQL backend, which replaces a broken connection before the next statement.

Django tests a connection with `SELECT 1`: a round trip per call, which a standby answers too. Here
no statement is spent on it. Before each statement or transaction a connection is replaced if

- an error showed that it is of no use (`NEW_CONNECTION`): the next one may reach another server;
- the server has closed it, or reported that it is a standby now: what the server sent of itself is
  waiting in the socket, and is read without waiting.

No statement is repeated here: whether one that failed was executed may be unknown.
"""

from __future__ import annotations

import select
from functools import cached_property
from types import TracebackType
from typing import Any

import psycopg
from django.db.backends.postgresql import base as postgresql
from django.db.utils import DatabaseErrorWrapper
from psycopg.pq import ConnStatus, PipelineStatus, TransactionStatus

from decisions.foundation.database.faults import NEW_CONNECTION, fault_of

READS = 8  # of what a server sends of itself: reports of settings, notices, its last message
# A statement without its answer (after Ctrl-C), or a failed transaction that was not rolled back.
_UNFINISHED = (TransactionStatus.ACTIVE, TransactionStatus.INERROR)
_IN_STANDBY = "in_hot_standby"  # a setting that PostgreSQL reports at connecting and at a change


class DatabaseWrapper(postgresql.DatabaseWrapper):
    """A connection of one thread; see the module."""

    must_replace = False  # an error showed that the present connection is of no use

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Connect to a server that takes writes.

        Raises:
            psycopg.Error: No server answers, or it is a standby.
        """
        connection = super().get_new_connection(conn_params)
        self.must_replace = False
        if _is_standby(connection):
            connection.close()
            raise psycopg.errors.ReadOnlySqlTransaction(
                "the server is a standby, which takes no writes"
            )
        return connection

    def is_usable(self) -> bool:
        """Tell, without a round trip, whether the connection can be used."""
        return not self.must_replace and _is_open(self.connection)

    def close_if_health_check_failed(self) -> None:
        """Close a connection that cannot be used; Django calls this before each statement and each
        transaction, and connects anew where there is no connection.
        """
        if self.connection is not None and not self.in_atomic_block and not self.is_usable():
            self.close()

    @cached_property
    def wrap_database_errors(self) -> DatabaseErrorWrapper:
        """Return the context that raises errors of the driver as Django's."""
        return _NoticingErrors(self)


class _NoticingErrors(DatabaseErrorWrapper):
    """Raises errors of the driver as Django's, and notices those after which the connection is of
    no use.
    """

    wrapper: DatabaseWrapper

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc_value is not None and fault_of(exc_value) in NEW_CONNECTION:
            self.wrapper.must_replace = True
        super().__exit__(exc_type, exc_value, traceback)


def _is_open(connection: psycopg.Connection[Any]) -> bool:
    raw = connection.pgconn
    if raw.status != ConnStatus.OK or raw.transaction_status in _UNFINISHED:
        return False
    if raw.pipeline_status != PipelineStatus.OFF:
        return False  # an error left it between two statements
    try:
        for _ in range(READS):
            if not _is_readable(raw.socket):
                return not _is_standby(connection)
            raw.consume_input()
            raw.is_busy()  # parses what was read
    except psycopg.Error:
        return False  # the server has closed the connection
    return False


def _is_readable(socket: int) -> bool:
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))


def _is_standby(connection: psycopg.Connection[Any]) -> bool:
    return connection.info.parameter_status(_IN_STANDBY) == "on"
