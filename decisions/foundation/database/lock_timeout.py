"""A time limit for locks on PostgreSQL, for processes that serve calls.

Without it, a call waits as long as another transaction holds its lock, and a few such calls occupy
every database thread of a web process. SQLite has the same limit (`timeout` of its OPTIONS).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db.backends.signals import connection_created


def limit_lock_waits() -> None:
    """Let statements of this process wait at most DATABASE_LOCK_TIMEOUT_MS for a lock.

    Commands that may wait longer, such as migrations, and workers do not call this.
    """
    connection_created.connect(_limit_connection)


def _limit_connection(connection: Any, **_: Any) -> None:
    if connection.vendor != "postgresql":
        return
    if settings.TRANSACTION_POOLING:
        if _limit_transaction not in connection.execute_wrappers:
            connection.execute_wrappers.append(_limit_transaction)
        return
    # Not in the connection's options: a pooler such as PgBouncer refuses unknown ones.
    with connection.cursor() as cursor:
        cursor.execute(f"SET {_limit()}")


def _limit() -> str:
    return f"lock_timeout = {int(settings.DATABASE_LOCK_TIMEOUT_MS)}"


def _limit_transaction(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
) -> Any:
    """Set the limit for the transaction that the statement begins, or for the statement if it is
    its own transaction: what is set for a pooled connection would apply to its other clients.
    """
    is_first = context["connection"].connection.info.transaction_status == 0  # IDLE
    if many or not is_first:
        return execute(sql, params, many, context)
    # One message with two statements: the server executes both in one transaction.
    execute(f"SET LOCAL {_limit()}; {sql}", params, many, context)
    context["cursor"].nextset()  # the result of the second statement
    return None
