"""What tells runs apart: a subject, labels and the codes of the error; the terms by which a run is
found, with their index; and the saved views of operators.
"""

import django.db.models.deletion
from django.db import migrations, models

# As runs.search.matching asks for it: another spelling would not be answered by the index.
_GIN = (
    "CREATE INDEX run_terms ON runs_runterms USING gin"
    " (array_to_tsvector(string_to_array(terms, ' ')))"
)
# Terms have letters and digits only, and the tokenizer `ascii` keeps every other character.
_FTS = """
CREATE VIRTUAL TABLE runs_runterms_fts USING fts5(
    terms, content='runs_runterms', content_rowid='id', tokenize='ascii', detail='none')
"""
_REMOVE = "INSERT INTO runs_runterms_fts (runs_runterms_fts, rowid, terms) VALUES ('delete', OLD.id, OLD.terms);"
_ADD = "INSERT INTO runs_runterms_fts (rowid, terms) VALUES (NEW.id, NEW.terms);"
_TRIGGERS = {
    "INSERT": _ADD,
    "DELETE": _REMOVE,
    "UPDATE OF terms": f"{_REMOVE} {_ADD}",
}


def index_terms(apps, schema_editor):
    """Create the index of terms."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(_GIN)
        return
    schema_editor.execute(_FTS)
    for event, writes in _TRIGGERS.items():
        name = f"runs_runterms_{event.split()[0].lower()}"
        schema_editor.execute(
            f"CREATE TRIGGER {name} AFTER {event} ON runs_runterms BEGIN {writes} END"
        )


def drop_index(apps, schema_editor):
    """Drop it; the triggers go with their table."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("DROP INDEX run_terms")
        return
    for event in _TRIGGERS:
        schema_editor.execute(f"DROP TRIGGER runs_runterms_{event.split()[0].lower()}")
    schema_editor.execute("DROP TABLE runs_runterms_fts")


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0019_task_sessions'),
    ]

    operations = [
        migrations.CreateModel(
            name='RunTerms',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('terms', models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name='SavedView',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64)),
                ('query', models.CharField(blank=True, max_length=2000)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.AddField(
            model_name='run',
            name='error_cause',
            field=models.CharField(blank=True, db_default='', default='', max_length=64),
        ),
        migrations.AddField(
            model_name='run',
            name='error_code',
            field=models.CharField(blank=True, db_default='', default='', max_length=64),
        ),
        migrations.AddField(
            model_name='run',
            name='labels',
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name='run',
            name='subject',
            field=models.CharField(max_length=200, null=True),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('template_id', 'session_action'), _negated=True), fields=['-created_at', '-id'], name='run_newest_submitted'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('ended_at__isnull', False)), fields=['-active_ms', '-id'], name='run_longest'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('subject__isnull', True)), fields=['-created_at', '-id'], name='run_without_subject'),
        ),
        migrations.AddField(
            model_name='runterms',
            name='run',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='terms', to='runs.run'),
        ),
        migrations.AddField(
            model_name='savedview',
            name='owner_id',
            field=models.BigIntegerField(),
        ),
        migrations.AddConstraint(
            model_name='runterms',
            constraint=models.UniqueConstraint(fields=('run',), name='run_terms_once'),
        ),
        migrations.AddConstraint(
            model_name='savedview',
            constraint=models.UniqueConstraint(fields=('owner_id', 'name'), name='saved_view_name_once'),
        ),
        migrations.RunPython(index_terms, drop_index),
    ]
