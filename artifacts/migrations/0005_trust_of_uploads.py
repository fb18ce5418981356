from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('artifacts', '0004_owners'),
    ]

    operations = [
        migrations.AddField(
            model_name='artifactupload',
            name='trust',
            field=models.CharField(max_length=8, null=True),
        ),
    ]
