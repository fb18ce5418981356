"""How many runs ever came into a status: a counter for /metrics beside the number there is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0011_keyed_calls"),
    ]

    operations = [
        migrations.AddField(
            model_name="runtotal",
            name="entered",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
    ]
