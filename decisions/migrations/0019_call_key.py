"""Name the field of a decision for what it identifies, a tool call; its column stays as it is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("decisions", "0018_trust_of_decisions")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    "decision",
                    "deed_key",
                    models.CharField(db_column="deed_key", max_length=64, null=True, unique=True),
                ),
                migrations.RenameField("decision", "deed_key", "call_key"),
            ]
        )
    ]
