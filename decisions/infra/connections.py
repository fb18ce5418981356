"""Database connections of loops that run for as long as their process."""

from __future__ import annotations

from typing import Any

from django.db import connection


def renew_connection() -> None:
    """Close this thread's connection if it is unusable or older than CONN_MAX_AGE.

    `close_old_connections` also has Django test the connection with a query before the next
    statement. A loop that closes the connection after an error, and then repeats what failed, does
    not need that, and would make twice as many queries.
    """
    connection.close_if_unusable_or_obsolete()
    thread_connection: Any = connection  # its type lacks the attribute
    thread_connection.health_check_done = True
