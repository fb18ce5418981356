"""Count the lost workers of a run since its last step ended."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0015_no_unread_columns"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="losses_without_progress",
            field=models.IntegerField(db_default=0, default=0),
        ),
    ]
