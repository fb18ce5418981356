from django.db import migrations, models

# The caller that an artifact or a decision belongs to is that of its run. What belongs to no known
# run stays without one, and for such a row everyone who may be remote is (docs/trust.md).
_ARTIFACTS = """
    UPDATE artifacts_artifact SET
        trust = (SELECT r.trust FROM runs_run r WHERE r.id = artifacts_artifact.run_id),
        principal_id = (SELECT r.principal_id FROM runs_run r WHERE r.id = artifacts_artifact.run_id),
        user_id = (SELECT r.user_id FROM runs_run r WHERE r.id = artifacts_artifact.run_id)
    WHERE EXISTS (SELECT 1 FROM runs_run r WHERE r.id = artifacts_artifact.run_id)
"""
_DECISIONS = """
    UPDATE decisions_decision SET
        trust = (SELECT r.trust FROM runs_run r WHERE r.id = decisions_decision.run_id)
    WHERE run_id IS NOT NULL
"""


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0025_sites_of_failures'),
        ('artifacts', '0004_owners'),
        ('decisions', '0018_trust_of_decisions'),
    ]

    operations = [
        migrations.AddField(
            model_name='keyedcall',
            name='trust',
            field=models.CharField(max_length=8, null=True),
        ),
        migrations.RunSQL(_ARTIFACTS, migrations.RunSQL.noop),
        migrations.RunSQL(_DECISIONS, migrations.RunSQL.noop),
    ]
