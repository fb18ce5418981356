"""Conversations without new messages are deleted; this index finds them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("decisions", "0011_conversation_risk")]
    operations = [
        migrations.AddIndex(
            "conversation", models.Index(fields=["updated_at"], name="conversation_age")
        ),
    ]
