from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0015_no_unread_columns'),
    ]

    operations = [
        migrations.AddField(
            model_name='webhook',
            name='sends_arguments',
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
