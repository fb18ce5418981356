from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('decisions', '0017_answer_mac'),
    ]

    operations = [
        migrations.AddField(
            model_name='decision',
            name='trust',
            field=models.CharField(max_length=8, null=True),
        ),
    ]
