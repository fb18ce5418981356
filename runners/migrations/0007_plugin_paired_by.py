"""Who paired each browser."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runners', '0006_plugin_clients'),
    ]

    operations = [
        migrations.AddField(
            model_name='pluginclient',
            name='paired_by',
            field=models.CharField(db_default='', default='', max_length=160),
        ),
        migrations.AddField(
            model_name='pluginticket',
            name='created_by',
            field=models.CharField(db_default='', default='', max_length=160),
        ),
    ]
