"""A token may have an expiry; the tokens that exist have none."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("decisions", "0013_audit_tools")]
    operations = [
        migrations.AddField(
            model_name="token",
            name="expires_at",
            field=models.DateTimeField(blank=True, null=True),
        )
    ]
