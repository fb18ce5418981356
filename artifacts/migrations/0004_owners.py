from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('artifacts', '0003_artifact_lists'),
    ]

    operations = [
        migrations.AddField(
            model_name='artifact',
            name='trust',
            field=models.CharField(max_length=8, null=True),
        ),
        migrations.AddField(
            model_name='artifact',
            name='principal_id',
            field=models.CharField(max_length=80, null=True),
        ),
        migrations.AddField(
            model_name='artifact',
            name='user_id',
            field=models.CharField(max_length=128, null=True),
        ),
    ]
