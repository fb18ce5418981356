"""What waits for a person in a session, so that a later "do it" is not taken for something else."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("decisions", "0010_audit_seals")]
    operations = [
        migrations.AddField("conversation", "risk", models.JSONField(default=dict)),
    ]
