"""The triggers of the audit tables: those in the database are compared with Continuity's.

The owner of the tables can remove the triggers that refuse changes, or add one that discards new
rows without an error. No row shows that. The expected definitions are those of the migrations
0002_audit_guards and 0010_audit_seals.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db import connection

_TABLES = ("decisions_auditentry", "decisions_auditseal")
_REFUSE = "BEGIN SELECT RAISE(ABORT, '{what} are append-only'); END"
_SAME_SEAL = "position = NEW.position OR entry_id = NEW.entry_id OR mac = NEW.mac"
_GUARDED = (
    ("decisions_auditentry", "audit", "audit entries", "audit_append_only", "id = NEW.id"),
    ("decisions_auditseal", "seals", "audit seals", "audit_seals_append_only", _SAME_SEAL),
)
# Each row of these queries: table, trigger or NULL, whether it is enabled, its definition. Without
# a trigger, the last column is a fault.
_SQLITE = """
    SELECT lower(tbl_name), name, 1, sql FROM sqlite_master
    WHERE type = 'trigger' AND lower(tbl_name) IN (%s, %s)
    UNION ALL SELECT name, NULL, 0, 'it is not a table' FROM sqlite_master
    WHERE type = 'view' AND lower(name) IN (%s, %s)
    UNION ALL SELECT name, NULL, 0, 'it has an ON CONFLICT clause' FROM sqlite_master
    WHERE type = 'table' AND lower(name) IN (%s, %s) AND sql LIKE '%%ON CONFLICT%%'
"""
_POSTGRESQL = """
    WITH audited AS (SELECT * FROM pg_class WHERE oid IN (%s::regclass, %s::regclass))
    SELECT relname, tgname, tgenabled = 'O', pg_get_triggerdef(t.oid, true) || ' AS ' || prosrc
    FROM pg_trigger t JOIN audited c ON c.oid = tgrelid JOIN pg_proc p ON p.oid = tgfoid
    UNION ALL SELECT relname, NULL, false, 'it has the rule ' || pg_get_ruledef(r.oid, true)
    FROM pg_rewrite r JOIN audited c ON c.oid = ev_class
    UNION ALL SELECT relname, NULL, false, 'it is not an ordinary table'
    FROM audited WHERE relkind <> 'r'
    UNION ALL SELECT relname, NULL, false, 'it has row-level security'
    FROM audited WHERE relrowsecurity
    UNION ALL SELECT relname, NULL, false, 'session_replication_role lifts its triggers'
    FROM audited WHERE current_setting('session_replication_role') <> 'origin'
"""


def changed_triggers() -> list[str]:
    """Return how the database's handling of writes to the audit tables differs from Continuity's,
    a sentence each; one query.
    """
    is_sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        if is_sqlite:
            cursor.execute(_SQLITE, [*_TABLES] * 3)
        else:
            cursor.execute(_POSTGRESQL, _TABLES)
        found = cursor.fetchall()
    expected = dict(_sqlite_triggers() if is_sqlite else _postgresql_triggers())
    present = {(table, name) for table, name, _, _ in found}
    faults = [
        f"{table}: the trigger {name} is missing" for table, name in expected.keys() - present
    ]
    for table, name, is_enabled, text in found:
        if fault := _fault_of(name, is_enabled, text, expected.get((table, name))):
            faults.append(f"{table}: {fault}")
    return sorted(faults)


def _fault_of(name: str | None, is_enabled: bool, text: str, expected: str | None) -> str | None:
    text = " ".join(text.split())
    if name is None:
        return text
    if expected is None:
        return f"the trigger {name} is not Continuity's: {text}"
    if text != expected:
        return f"the trigger {name} was changed: {text}"
    return None if is_enabled else f"the trigger {name} is disabled"


def _sqlite_triggers() -> Iterator[tuple[tuple[str, str], str]]:
    for table, prefix, what, _, same in _GUARDED:
        refuse = _REFUSE.format(what=what)
        for verb in ("update", "delete"):
            name = f"{prefix}_no_{verb}"
            yield (table, name), f"CREATE TRIGGER {name} BEFORE {verb.upper()} ON {table} {refuse}"
        name = f"{prefix}_no_replace"
        insert = (
            f"CREATE TRIGGER {name} BEFORE INSERT ON {table}"  # noqa: S608  (a text to compare with)
            f" WHEN EXISTS (SELECT 1 FROM {table} WHERE {same}) {refuse}"
        )
        yield (table, name), insert


def _postgresql_triggers() -> Iterator[tuple[tuple[str, str], str]]:
    events = {"change": ("DELETE OR UPDATE", "ROW"), "truncate": ("TRUNCATE", "STATEMENT")}
    for table, prefix, what, function, _ in _GUARDED:
        for suffix, (event, level) in events.items():
            name = f"{prefix}_no_{suffix}"
            yield (
                (table, name),
                f"CREATE TRIGGER {name} BEFORE {event} ON {table} FOR EACH {level} EXECUTE FUNCTION"
                f" {function}() AS BEGIN RAISE EXCEPTION '{what} are append-only'; END",
            )
