"""Detect a pooler that gives each transaction another server connection (PgBouncer's transaction
mode), where prepared statements and settings of a session would reach other clients.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from django.db import connection

ATTEMPTS = 5  # other clients of the pool may take the server connection in between


def pools_transactions() -> bool:
    """Return whether a pooler serves two of our connections by one connection of the server.

    True is certain. False may be wrong while many others use the pool.
    """
    connection.ensure_connection()
    # A pooler sends each client an id of its own in place of the server process's.
    if connection.vendor != "postgresql" or _is_direct(connection):
        return False
    with closing(connection.copy()) as second:
        for _ in range(ATTEMPTS):
            of_first = {_server_pid(connection), _server_pid(connection)}
            if len(of_first) > 1 or _server_pid(second) in of_first:
                return True
    return False


def _is_direct(one: Any) -> bool:
    return bool(one.connection.info.backend_pid == _server_pid(one))


def _server_pid(one: Any) -> int:
    with one.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])
