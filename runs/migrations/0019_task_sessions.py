from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0018_failing_webhooks'),
    ]

    operations = [
        migrations.AddField(
            model_name='task',
            name='session_id',
            field=models.CharField(max_length=64, null=True, unique=True),
        ),
    ]
