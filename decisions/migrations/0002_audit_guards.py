"""Audit rows are only ever added: the database itself refuses to change or remove one."""

from django.db import migrations

SQLITE = [
    """CREATE TRIGGER audit_no_update BEFORE UPDATE ON decisions_auditentry
       BEGIN SELECT RAISE(ABORT, 'audit entries are append-only'); END""",
    """CREATE TRIGGER audit_no_delete BEFORE DELETE ON decisions_auditentry
       BEGIN SELECT RAISE(ABORT, 'audit entries are append-only'); END""",
    # REPLACE removes the old row without firing the delete guard.
    """CREATE TRIGGER audit_no_replace BEFORE INSERT ON decisions_auditentry
       WHEN EXISTS (SELECT 1 FROM decisions_auditentry WHERE id = NEW.id)
       BEGIN SELECT RAISE(ABORT, 'audit entries are append-only'); END""",
]
SQLITE_UNDO = [f"DROP TRIGGER IF EXISTS audit_no_{verb}" for verb in ("update", "delete", "replace")]

POSTGRESQL = [
    """CREATE OR REPLACE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN RAISE EXCEPTION 'audit entries are append-only'; END $$""",
    """CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON decisions_auditentry
       FOR EACH ROW EXECUTE FUNCTION audit_append_only()""",
    """CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON decisions_auditentry
       FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()""",
]
POSTGRESQL_UNDO = [
    "DROP TRIGGER IF EXISTS audit_no_change ON decisions_auditentry",
    "DROP TRIGGER IF EXISTS audit_no_truncate ON decisions_auditentry",
    "DROP FUNCTION IF EXISTS audit_append_only()",
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
    dependencies = [("decisions", "0001_initial")]
    operations = [migrations.RunPython(guard, unguard)]
