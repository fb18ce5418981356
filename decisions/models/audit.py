"""The audit log and its hash chain: append-only tables (database triggers:
migrations/0002_audit_guards.py and 0010_audit_seals.py).
"""

from __future__ import annotations

import json
from typing import Any

from django.db import models

# Text of the form that Django writes: ASCII, the date and time that SQLite finds in it, and a
# fraction. SQLite rounds fractions to milliseconds, so that one above .9995 is the next second.
_SQLITE_TIME = (
    "length(CAST({0} AS BLOB)) = length({0}) AND {0} >= '0001'"
    " AND datetime(substr({0}, 1, 19), '+0 days') = substr({0}, 1, 19)"
    " AND substr({0}, 20) NOT GLOB '*[^.0-9]*'"
)


def _as_blob(compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
    """Select a column of SQLite as bytes: one text that is not UTF-8 would fail the whole query."""
    if compiler.connection.vendor == "sqlite" and not compiler.query.subquery:
        return f"CAST({sql} AS BLOB)", params
    return sql, params


def _as_text(value: Any, expression: Any = None, connection: Any = None) -> Any:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


class ReadableTextField(models.CharField):  # type: ignore[type-arg]
    """Text that a query can always return: bytes that are not UTF-8, which only a row of SQLite
    that Continuity did not write has, are returned as escapes.
    """

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        """Return the SQL that selects the column."""
        return _as_blob(compiler, sql, params)

    def get_db_converters(self, connection: Any) -> list[Any]:
        """Return what converts a selected value."""
        return [_as_text] if connection.vendor == "sqlite" else []

    def deconstruct(self) -> Any:
        """Return the definition for migrations: to the database it is a CharField."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.CharField", args, kwargs


class ReadableTimeField(models.DateTimeField):  # type: ignore[type-arg]
    """A time that a query can always return: None where the column has no time of the years that
    Python knows, which only a row that Continuity did not write has.
    """

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        """Return the SQL that selects the column."""
        if compiler.query.subquery:
            return sql, params
        if compiler.connection.vendor == "sqlite":
            return f"CASE WHEN {_SQLITE_TIME.format(sql)} THEN {sql} END", [*params] * 7
        is_time = f"{sql} >= '0001-01-02+00' AND {sql} < '9999-12-31+00'"
        return f"CASE WHEN {is_time} THEN {sql} END", [*params, *params, *params]

    def deconstruct(self) -> Any:
        """Return the definition for migrations: to the database it is a DateTimeField."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.DateTimeField", args, kwargs


class MetadataField(models.JSONField):
    """JSON that a query can always return: a value that JSON does not have, such as a number with
    5000 digits, which only a forged row has, is returned as its text.
    """

    def select_format(self, compiler: Any, sql: str, params: Any) -> tuple[str, Any]:
        """Return the SQL that selects the column."""
        return _as_blob(compiler, sql, params)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Return the value of a column, or `{"unreadable": text}`."""
        text = _as_text(value)
        try:
            found = super().from_db_value(text, expression, connection)
            json.dumps(found, allow_nan=False)
        except (ValueError, RecursionError):
            return {"unreadable": str(text)[:200]}
        if isinstance(found, str) and found is text:  # as Django returns text that is not JSON
            return {"unreadable": text[:200]}
        return found

    def deconstruct(self) -> Any:
        """Return the definition for migrations: to the database it is a JSONField."""
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs


class AuditEntry(models.Model):
    """One audit event: an action or a refusal. Written by `decisions.audit.record` alone, in the
    transaction of the action.
    """

    id = models.BigAutoField(primary_key=True)
    # Ids of other rows are plain strings, so that no cascade deletes an audit row.
    tenant_id = ReadableTextField(max_length=64)
    workspace_id = ReadableTextField(max_length=64)
    action = ReadableTextField(max_length=64)
    actor = ReadableTextField(max_length=160)
    resource_type = ReadableTextField(max_length=32)
    resource_id = ReadableTextField(max_length=128)
    metadata = MetadataField(default=dict)
    created_at = ReadableTimeField()
    mac = ReadableTextField(max_length=64)

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["workspace_id", "-id"], name="audit_workspace"),
            models.Index(fields=["resource_id"], name="audit_resource"),
            models.Index(fields=["action", "-id"], name="audit_action"),
            models.Index(fields=["actor", "-id"], name="audit_actor"),
            models.Index(fields=["created_at"], name="audit_time"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.resource_id}"


class AuditSeal(models.Model):
    """One link of the audit log's hash chain, written by `decisions.audit.sealer` alone.

    It has the id and the MAC of its entry, and the MAC covers the entry's other columns: a seal
    proves which entry existed even after the entry was deleted.
    """

    position = models.BigIntegerField(primary_key=True)  # 1, 2, 3, … without a gap
    entry_id = models.BigIntegerField()
    mac = ReadableTextField(max_length=64)  # the entry's
    prev = ReadableTextField(max_length=64)  # the hash at the position before
    hash = ReadableTextField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["entry_id"], name="one_seal_per_entry"),
            # A copy of a genuine entry, MAC and all, is not sealed a second time.
            models.UniqueConstraint(fields=["mac"], name="one_seal_per_mac"),
        ]

    def __str__(self) -> str:
        return f"seal {self.position}"
