from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('decisions', '0015_exact_arguments'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='sealed_context',
            field=models.BinaryField(null=True),
        ),
    ]
