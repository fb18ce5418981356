"""The chain beside the audit log, guarded as the log is."""

from django.db import migrations, models

SQLITE = [
    """CREATE TRIGGER seals_no_update BEFORE UPDATE ON decisions_auditseal
       BEGIN SELECT RAISE(ABORT, 'audit seals are append-only'); END""",
    """CREATE TRIGGER seals_no_delete BEFORE DELETE ON decisions_auditseal
       BEGIN SELECT RAISE(ABORT, 'audit seals are append-only'); END""",
    # REPLACE removes the old row without firing the delete guard.
    """CREATE TRIGGER seals_no_replace BEFORE INSERT ON decisions_auditseal
       WHEN EXISTS (SELECT 1 FROM decisions_auditseal WHERE position = NEW.position
                    OR entry_id = NEW.entry_id OR mac = NEW.mac)
       BEGIN SELECT RAISE(ABORT, 'audit seals are append-only'); END""",
]
SQLITE_UNDO = [f"DROP TRIGGER IF EXISTS seals_no_{verb}" for verb in ("update", "delete", "replace")]

POSTGRESQL = [
    """CREATE OR REPLACE FUNCTION audit_seals_append_only() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN RAISE EXCEPTION 'audit seals are append-only'; END $$""",
    """CREATE TRIGGER seals_no_change BEFORE UPDATE OR DELETE ON decisions_auditseal
       FOR EACH ROW EXECUTE FUNCTION audit_seals_append_only()""",
    """CREATE TRIGGER seals_no_truncate BEFORE TRUNCATE ON decisions_auditseal
       FOR EACH STATEMENT EXECUTE FUNCTION audit_seals_append_only()""",
]
POSTGRESQL_UNDO = [
    "DROP TRIGGER IF EXISTS seals_no_change ON decisions_auditseal",
    "DROP TRIGGER IF EXISTS seals_no_truncate ON decisions_auditseal",
    "DROP FUNCTION IF EXISTS audit_seals_append_only()",
]


def guard(apps, schema_editor):
    statements = SQLITE if schema_editor.connection.vendor == "sqlite" else POSTGRESQL
    for statement in statements:
        schema_editor.execute(statement)


def unguard(apps, schema_editor):
    statements = SQLITE_UNDO if schema_editor.connection.vendor == "sqlite" else POSTGRESQL_UNDO
    for statement in statements:
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("decisions", "0009_conversations")]
    operations = [
        migrations.CreateModel(
            name="AuditSeal",
            fields=[
                ("position", models.BigIntegerField(primary_key=True, serialize=False)),
                ("entry_id", models.BigIntegerField()),
                ("mac", models.CharField(max_length=64)),
                ("prev", models.CharField(max_length=64)),
                ("hash", models.CharField(max_length=64)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("entry_id",), name="one_seal_per_entry"),
                    models.UniqueConstraint(fields=("mac",), name="one_seal_per_mac"),
                ],
            },
        ),
        migrations.RunPython(guard, unguard),
    ]
