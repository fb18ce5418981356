"""The rows about a tool are found by its name: an index of what they tell, and of no other row."""

from django.db import migrations

_MADE = "CREATE INDEX audit_tool ON decisions_auditentry ({tool}, id DESC) WHERE {tool} IS NOT NULL"


def _tool(schema_editor):
    # As decisions.audit_log.TOOL_IN_SQL asks for it: another spelling would not be answered by the index.
    sqlite = schema_editor.connection.vendor == "sqlite"
    return "json_extract(metadata, '$.tool')" if sqlite else "(metadata ->> 'tool')"


def make(apps, schema_editor):
    schema_editor.execute(_MADE.format(tool=_tool(schema_editor)))


def drop(apps, schema_editor):
    schema_editor.execute("DROP INDEX audit_tool")


class Migration(migrations.Migration):
    dependencies = [("decisions", "0012_conversation_age")]
    operations = [migrations.RunPython(make, drop)]
