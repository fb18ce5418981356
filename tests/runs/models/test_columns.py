"""After all migrations the database has the columns of every model."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db import connection


@pytest.mark.django_db
def test_the_database_has_every_column_of_every_model() -> None:
    missing = []
    with connection.cursor() as cursor:
        for model in apps.get_models():
            table = model._meta.db_table
            found = connection.introspection.get_table_description(cursor, table)
            names = {column.name for column in found}
            missing += [
                f"{table}.{field.column}"
                for field in model._meta.concrete_fields
                if field.column not in names
            ]
    assert missing == []
