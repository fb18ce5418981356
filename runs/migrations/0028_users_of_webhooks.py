import json

from django.db import migrations, models


def set_users(apps, schema_editor):
    """Limit each webhook to the users of the token that created it. One whose creator is a person,
    a token for any user, or not known receives what it received.
    """
    tokens = apps.get_model('decisions', 'Token').objects
    for hook in apps.get_model('runs', 'Webhook').objects.filter(created_by__startswith='token:'):
        token = tokens.filter(id=hook.created_by.removeprefix('token:')).first()
        if token is not None and token.acts_for:
            hook.users = ''.join(json.dumps(user) for user in sorted(token.acts_for))
            hook.save(update_fields=['users'])


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0027_process_heartbeats'),
        ('decisions', '0018_trust_of_decisions'),
    ]

    operations = [
        migrations.AddField(
            model_name='webhook',
            name='users',
            field=models.TextField(null=True),
        ),
        migrations.RunPython(set_users, migrations.RunPython.noop),
    ]
