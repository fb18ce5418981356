"""An index of what is under way, for the scheduler's looks over all workspaces."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("runs", "0008_confirmation_webhooks"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", True)),
                fields=["status"],
                name="run_not_ended",
            ),
        ),
    ]
