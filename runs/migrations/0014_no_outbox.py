"""The outbox of wake-ups is gone: workers find every claimable run without it.

The table stays until a later version, because processes of the version before still write it.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0013_conversations"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="OutboxEntry")]
        ),
    ]
