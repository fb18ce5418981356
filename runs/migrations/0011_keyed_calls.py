"""Idempotency keys of direct calls, and what those came to."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0010_open_calls"),
    ]

    operations = [
        migrations.CreateModel(
            name="KeyedCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("principal_id", models.CharField(max_length=80)),
                ("workspace_id", models.CharField(max_length=64)),
                ("tool", models.CharField(max_length=128)),
                ("key", models.CharField(max_length=200)),
                ("digest", models.CharField(max_length=64)),
                ("call_id", models.CharField(max_length=64, unique=True)),
                ("answer", models.BinaryField(null=True)),
                ("created_at", models.DateTimeField(db_index=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("principal_id", "workspace_id", "tool", "key"),
                        name="key_of_one_call",
                    )
                ],
            },
        ),
    ]
