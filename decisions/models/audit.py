"""The audit log and its hash chain: append-only tables (database triggers:
migrations/0002_audit_guards.py and 0010_audit_seals.py).
"""

from __future__ import annotations

import json
from typing import Any

from django.db import models


class MetadataField(models.JSONField):
    """JSON that a query can always return: a value that JSON does not have, such as a number with
    5000 digits, which only a forged row has, is returned as its text.
    """

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Return the value of a column, or `{"unreadable": text}`."""
        try:
            found = super().from_db_value(value, expression, connection)
            json.dumps(found, allow_nan=False)
        except (ValueError, RecursionError):
            return {"unreadable": str(value)[:200]}
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
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    action = models.CharField(max_length=64)
    actor = models.CharField(max_length=160)
    resource_type = models.CharField(max_length=32)
    resource_id = models.CharField(max_length=128)
    metadata = MetadataField(default=dict)
    created_at = models.DateTimeField()
    mac = models.CharField(max_length=64)

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
    mac = models.CharField(max_length=64)  # the entry's
    prev = models.CharField(max_length=64)  # the hash at the position before
    hash = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["entry_id"], name="one_seal_per_entry"),
            # A copy of a genuine entry, MAC and all, is not sealed a second time.
            models.UniqueConstraint(fields=["mac"], name="one_seal_per_mac"),
        ]

    def __str__(self) -> str:
        return f"seal {self.position}"
