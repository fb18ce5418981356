from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0024_runs_submitted_again'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='error_site',
            field=models.CharField(blank=True, db_default='', default='', max_length=100),
        ),
    ]
