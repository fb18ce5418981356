"""Calls that the audit log has told the beginning of and not yet the end."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0009_runs_not_ended"),
    ]

    operations = [
        migrations.CreateModel(
            name="OpenCall",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("opening", models.JSONField()),
                ("run_id", models.CharField(max_length=64, null=True)),
                ("epoch", models.IntegerField(default=0)),
                ("process", models.CharField(max_length=200)),
                ("opened_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["run_id"], name="open_call_of_run")],
            },
        ),
    ]
