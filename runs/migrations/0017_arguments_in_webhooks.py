from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0016_losses_without_progress'),
    ]

    operations = [
        migrations.AddField(
            model_name='webhook',
            name='sends_arguments',
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
