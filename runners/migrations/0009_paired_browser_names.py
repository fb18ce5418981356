"""Names of paired browsers in the admin: no table changes."""

from django.db import migrations, models

KINDS = [
    ("docker-runner", "Docker Runner"),
    ("browser", "Browser"),
    ("plugin", "Paired browser"),
    ("workspace", "Workspace"),
]


class Migration(migrations.Migration):
    dependencies = [("runners", "0008_opened_addresses")]

    operations = [
        migrations.AlterModelOptions("pluginclient", {"verbose_name": "paired browser"}),
        migrations.AlterModelOptions("pluginticket", {"verbose_name": "pairing ticket"}),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    "executiontarget", "kind", models.CharField(choices=KINDS, max_length=16)
                )
            ]
        ),
    ]
