"""The database's own time, which all processes share: the clocks of machines differ."""

from __future__ import annotations

from django.db import connection


def database_time() -> str:
    """Return the SQL expression of the present time, for a statement with parameters."""
    if connection.vendor == "postgresql":
        return "STATEMENT_TIMESTAMP()"
    return "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')"
