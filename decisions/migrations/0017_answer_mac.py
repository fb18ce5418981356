from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('decisions', '0016_exact_chat_context'),
    ]

    operations = [
        migrations.AddField(
            model_name='confirmation',
            name='answer_mac',
            field=models.CharField(editable=False, max_length=64, null=True),
        ),
    ]
