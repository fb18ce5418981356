"""What was done, and the chain that seals it: rows that are only ever added (guards:
migrations/0002_audit_guards.py and 0010_audit_seals.py).
"""

from __future__ import annotations

from django.db import models


class AuditEntry(models.Model):
    """One deed or refusal, written by `decisions.audit.record` alone, in the transaction
    of what it tells.
    """

    id = models.BigAutoField(primary_key=True)
    # Ids of rows above or beside are plain strings: no cascade may reach an audit row (mechanisms
    # 15).
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64)
    action = models.CharField(max_length=64)
    actor = models.CharField(max_length=160)
    resource_type = models.CharField(max_length=32)
    resource_id = models.CharField(max_length=128)
    metadata = models.JSONField(default=dict)
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
    """One link of the chain beside the log, written by `decisions.audit.sealer` alone (mechanisms
    14).

    An entry is named by its id and its MAC, which covers the rest of it: so a seal still tells what
    was there after its entry is gone.
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
