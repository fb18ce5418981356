from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0017_arguments_in_webhooks'),
    ]

    operations = [
        migrations.AddField(
            model_name='webhook',
            name='failing_since',
            field=models.DateTimeField(null=True),
        ),
    ]
