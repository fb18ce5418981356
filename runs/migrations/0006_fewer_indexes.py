"""Fewer indexes on runs: each of the three writes of a run's life pays for all that it is in. The
lists of the API keep theirs; the rarer filters of the admin walk along the newest.
"""

from django.db import migrations, models


def drop_pattern_indexes(apps, schema_editor):
    """Drop what serves LIKE, which nothing asks of these columns (as in 0002)."""
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"
            " AND tablename LIKE 'runs\\_%%' AND right(indexname, 5) = '_like'", []
        )
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP INDEX {schema_editor.quote_name(name)}")


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0005_webhooks'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='run',
            name='run_by_workspace',
        ),
        migrations.RemoveIndex(
            model_name='run',
            name='run_by_status_of_all',
        ),
        migrations.RemoveIndex(
            model_name='run',
            name='run_by_template_of_all',
        ),
        migrations.RemoveIndex(
            model_name='run',
            name='run_by_session',
        ),
        migrations.AlterField(
            model_name='run',
            name='retry_of',
            field=models.CharField(max_length=64, null=True),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('status__in', ['failed', 'partial_success', 'canceled'])), fields=['status', '-created_at', '-id'], name='run_ended_badly'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('session_id__isnull', False)), fields=['session_id'], name='run_by_session'),
        ),
        migrations.AddConstraint(
            model_name='run',
            constraint=models.UniqueConstraint(condition=models.Q(('retry_of__isnull', False)), fields=('retry_of',), name='run_is_retried_once'),
        ),
        migrations.RunPython(drop_pattern_indexes, migrations.RunPython.noop),
    ]
