"""Forget two columns that nothing reads.

They stay in the database until a later version, because processes of the version before write one.
"""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0014_no_outbox"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveField(model_name="task", name="selected_client_id"),
                migrations.RemoveField(model_name="webhookdelivery", name="settled_at"),
            ]
        ),
    ]
