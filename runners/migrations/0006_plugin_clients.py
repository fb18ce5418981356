"""The browsers that people paired, and the tickets that pair them."""

import django.utils.timezone
import runners.models
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runners', '0005_target_catalogue'),
    ]

    operations = [
        migrations.CreateModel(
            name='PluginClient',
            fields=[
                ('id', models.CharField(default=runners.models.new_client_id, editable=False, max_length=64, primary_key=True, serialize=False)),
                ('tenant_id', models.CharField(max_length=64)),
                ('workspace_id', models.CharField(max_length=64)),
                ('principal_id', models.CharField(max_length=80)),
                ('principal', models.JSONField()),
                ('name', models.CharField(max_length=128)),
                ('extension_id', models.CharField(max_length=64)),
                ('extension_name', models.CharField(max_length=128)),
                ('extension_version', models.CharField(max_length=32)),
                ('user_agent', models.CharField(max_length=512)),
                ('language', models.CharField(default='', max_length=35)),
                ('secret_digest', models.CharField(max_length=64)),
                ('previous_digest', models.CharField(max_length=64, null=True)),
                ('generation', models.IntegerField(default=1)),
                ('connection_id', models.CharField(max_length=64, null=True)),
                ('connected_at', models.DateTimeField(null=True)),
                ('last_seen_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('last_used_at', models.DateTimeField(null=True)),
                ('timeouts', models.IntegerField(default=0)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('revoked_at', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['workspace_id', 'principal_id', '-last_seen_at'], name='plugin_client_newest')],
                'constraints': [models.CheckConstraint(condition=models.Q(('revoked_at__isnull', True), ('connection_id__isnull', True), _connector='OR'), name='plugin_client_revoked_is_closed')],
            },
        ),
        migrations.CreateModel(
            name='PluginTicket',
            fields=[
                ('digest', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('principal', models.JSONField()),
                ('name', models.CharField(default='', max_length=128)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['expires_at'], name='plugin_ticket_to_delete')],
            },
        ),
    ]
