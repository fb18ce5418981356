"""Whether the database takes writes now, found without writing."""

from __future__ import annotations

from django.db import Error, connection, transaction

from decisions.foundation.database.faults import Fault, fault_of


def takes_writes() -> bool:
    """Return whether the database takes writes; False if the server or the file is read-only.

    Raises:
        django.db.Error: The database does not answer.
    """
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            if connection.vendor != "postgresql":
                # Deletes nothing; a read-only file refuses it.
                cursor.execute("DELETE FROM django_migrations WHERE 1 = 0")
                return True
            cursor.execute("SHOW transaction_read_only")
            return bool(cursor.fetchone() == ("off",))
    except Error as error:
        if fault_of(error) == Fault.READ_ONLY:
            return False
        raise
