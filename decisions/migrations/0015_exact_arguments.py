from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('decisions', '0014_token_expiry'),
    ]

    operations = [
        migrations.AddField(
            model_name='decision',
            name='sealed_arguments',
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name='conversation',
            name='sealed_request',
            field=models.BinaryField(null=True),
        ),
    ]
