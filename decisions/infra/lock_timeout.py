"""A time limit for locks on PostgreSQL, for processes that serve calls.

Without it, a call waits as long as another transaction holds its lock, and a few such calls occupy
every database thread of a web process. SQLite has the same limit (`timeout` of its OPTIONS).
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import Error
from django.db.backends.signals import connection_created

LOCK_NOT_AVAILABLE = "55P03"


def limit_lock_waits() -> None:
    """Let statements of this process wait at most DATABASE_LOCK_TIMEOUT_MS for a lock.

    Commands that may wait longer, such as migrations, and workers do not call this.
    """
    connection_created.connect(_set_lock_timeout)


def _set_lock_timeout(connection: Any, **_: Any) -> None:
    if connection.vendor == "postgresql":
        # Not in the connection's options: a pooler such as PgBouncer refuses unknown ones.
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {int(settings.DATABASE_LOCK_TIMEOUT_MS)}")


def is_lock_timeout(error: Error) -> bool:
    """Tell whether a statement failed because a lock was not released in time."""
    is_sqlite = str(error) == "database is locked"
    return is_sqlite or getattr(error.__cause__, "sqlstate", None) == LOCK_NOT_AVAILABLE
