"""Idempotency keys, slots and workers."""

from __future__ import annotations

from django.db import models


class RunKey(models.Model):
    """An idempotency key of a submit: one run per (principal, template, key) while the row exists
    (S0 §4.1.1).
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
    """An idempotency key of a direct call: one call per (principal, workspace, tool, key) while the
    row exists (`runs.calls.direct.idempotency`).

    Attributes:
        trust: of the call: one with a lower level does not get its answer; None in rows of an older
            version.
        call_id: the call's id in the audit log.
        answer: the call's response as compressed JSON; None until it has ended.
    """

    principal_id = models.CharField(max_length=80)
    workspace_id = models.CharField(max_length=64)
    tool = models.CharField(max_length=128)
    key = models.CharField(max_length=200)
    digest = models.CharField(max_length=64)
    trust = models.CharField(max_length=8, null=True)
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
    """The right of one run to run. There is a row for each of MAX_CONCURRENT_RUNS, taken by
    compare-and-set: a count could drift when a worker dies.
    """

    number = models.IntegerField(primary_key=True)
    run_id = models.CharField(max_length=64, null=True, unique=True)
    workspace_id = models.CharField(max_length=64, null=True)
    worker_id = models.CharField(max_length=64, null=True)
    epoch = models.IntegerField(default=0)

    def __str__(self) -> str:
        return str(self.number)


class Worker(models.Model):
    """A worker process.

    Attributes:
        process: machine, pid namespace, pid and start time, by which processes of the same machine
            see that it is gone (`decisions.foundation.infra.processes`).
        beat: the heartbeat, a counter; while it rises the worker keeps all its leases.
        beat_at: the database's time at the last heartbeat, for people and `manage.py status`; no
            lease depends on it.
        lost_at: when the worker was marked lost, or shut down.
        stopped_at: when it shut down.
    """

    id = models.CharField(primary_key=True, max_length=64)
    process = models.CharField(max_length=200)
    host = models.CharField(max_length=255)
    beat = models.BigIntegerField(default=0)
    started_at = models.DateTimeField()
    beat_at = models.DateTimeField(null=True)
    lost_at = models.DateTimeField(null=True)
    stopped_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.id


class ServiceBeat(models.Model):
    """A web or scheduler process. It holds no lease: its heartbeat only shows that it works.

    Attributes:
        kind: web or scheduler.
        process: as of a worker.
        beat_at: the database's time at the last heartbeat.
    """

    id = models.CharField(primary_key=True, max_length=64)
    kind = models.CharField(max_length=16)
    process = models.CharField(max_length=200)
    host = models.CharField(max_length=255)
    started_at = models.DateTimeField()
    beat_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.id
