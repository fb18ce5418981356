"""What a runner published when it was probed last."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runners", "0004_target_probes"),
    ]

    operations = [
        migrations.AddField(
            model_name="executiontarget",
            name="catalogue",
            field=models.JSONField(
                db_default=models.Value([], models.JSONField()), default=list
            ),
        ),
        migrations.AddField(
            model_name="executiontarget",
            name="catalogue_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="executiontarget",
            name="catalogue_error",
            field=models.CharField(max_length=300, null=True),
        ),
    ]
