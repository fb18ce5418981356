"""Whether the database takes writes is known without writing."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection

from decisions.foundation.database.writability import takes_writes
from tests.faults.installation import use_database


@pytest.mark.django_db(transaction=True)
def test_a_database_takes_writes_until_it_is_read_only(tmp_path: Path) -> None:
    assert takes_writes()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET default_transaction_read_only = on")
        assert not takes_writes()
        connection.close()
        return
    with use_database(NAME=f"file:{connection.settings_dict['NAME']}?mode=ro"):
        assert not takes_writes()
