"""Who works: keys, slots, doorbells and workers."""

from __future__ import annotations

from django.db import models


class RunKey(models.Model):
    """A caller's idempotency key: one run per (principal, template, key) while it lives (S0
    §4.1.1).
    """

    principal_id = models.CharField(max_length=80)
    template_id = models.CharField(max_length=128)
    key = models.CharField(max_length=255)
    run_id = models.CharField(max_length=64)
    inputs_digest = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["principal_id", "template_id", "key"], name="run_key_per_principal"
            )
        ]

    def __str__(self) -> str:
        return self.key


class KeyedCall(models.Model):
    """A direct call's idempotency key: one call per (principal, workspace, tool, key) while it
    lives (`runs.direct_calls.idempotency`).

    Attributes:
        call_id: what the audit log names the call.
        answer: what it came to, compressed JSON; None until its end.
    """

    principal_id = models.CharField(max_length=80)
    workspace_id = models.CharField(max_length=64)
    tool = models.CharField(max_length=128)
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    call_id = models.CharField(max_length=64, unique=True)
    answer = models.BinaryField(null=True)
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["principal_id", "workspace_id", "tool", "key"], name="key_of_one_call"
            )
        ]

    def __str__(self) -> str:
        return self.key


class Slot(models.Model):
    """The right of one run to run: a row, never a count (reliability rule 3)."""

    number = models.IntegerField(primary_key=True)
    run_id = models.CharField(max_length=64, null=True, unique=True)
    workspace_id = models.CharField(max_length=64, null=True)
    worker_id = models.CharField(max_length=64, null=True)
    epoch = models.IntegerField(default=0)

    def __str__(self) -> str:
        return str(self.number)


class OutboxEntry(models.Model):
    """A doorbell that has to ring until somebody claims the run; written with the run, deleted by
    its claim.
    """

    run_id = models.CharField(primary_key=True, max_length=64)
    queue = models.CharField(max_length=96)
    rung_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "outbox entries"
        indexes = [models.Index(fields=["rung_at"], name="outbox_rung")]

    def __str__(self) -> str:
        return self.run_id


class Worker(models.Model):
    """A worker process that takes runs; its `beat` is the lease of all it took (mechanisms 5)."""

    id = models.CharField(primary_key=True, max_length=64)
    # Machine, pid namespace, pid and start time: tells whether the process is gone, on its own
    # machine.
    process = models.CharField(max_length=200)
    host = models.CharField(max_length=255)
    beat = models.BigIntegerField(default=0)
    started_at = models.DateTimeField()
    lost_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.id
