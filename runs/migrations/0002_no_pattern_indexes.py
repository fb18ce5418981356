"""Drop the second index that Django gives every unique text column on PostgreSQL: it serves LIKE,
which nothing asks of these columns, and every insert pays for it.
"""

from django.db import migrations

TABLES = ("runs_outboxentry", "runs_slot", "runs_worker", "artifacts_artifact")


def drop(apps, schema_editor):
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"
            " AND tablename = ANY(%s) AND right(indexname, 5) = '_like'",
            [list(TABLES)],
        )
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP INDEX {schema_editor.quote_name(name)}")


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial"), ("artifacts", "0001_initial")]
    operations = [migrations.RunPython(drop, migrations.RunPython.noop)]
