"""Roll-ups of ended runs and of the load, from which the plots of the admin are drawn."""

from __future__ import annotations

from django.db import models


class RunStatistic(models.Model):
    """What happened in one period: the runs that were accepted in it, counted when they end, and
    the load at that time. Written by `runs.statistics` alone.

    Attributes:
        resolution_s: the length of the period; `at` is its start.
        workspace_id, template_id: of the runs; empty: all.
        durations, waits: histograms of running times and of times in the queue
            (`runs.statistics.histogram`).
        steps: the number of steps by kind.
        cost_micro_usd: of model turns with a known price, in millionths of a US dollar.
        slot_ms: the time that slots were taken, of `sampled_ms` that were observed.
        queued, oldest_ms: the longest queue, and the age of its oldest run.
    """

    resolution_s = models.IntegerField()
    at = models.DateTimeField()
    workspace_id = models.CharField(max_length=64)
    template_id = models.CharField(max_length=128)
    succeeded = models.BigIntegerField(default=0, db_default=0)
    partial_success = models.BigIntegerField(default=0, db_default=0)
    failed = models.BigIntegerField(default=0, db_default=0)
    canceled = models.BigIntegerField(default=0, db_default=0)
    active_ms = models.BigIntegerField(default=0, db_default=0)
    durations = models.JSONField(default=dict)
    waits = models.JSONField(default=dict)
    steps = models.JSONField(default=dict)
    pages = models.BigIntegerField(default=0, db_default=0)
    input_tokens = models.BigIntegerField(default=0, db_default=0)
    output_tokens = models.BigIntegerField(default=0, db_default=0)
    cost_micro_usd = models.BigIntegerField(default=0, db_default=0)
    slot_ms = models.BigIntegerField(default=0, db_default=0)
    sampled_ms = models.BigIntegerField(default=0, db_default=0)
    queued = models.BigIntegerField(default=0, db_default=0)
    oldest_ms = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["resolution_s", "workspace_id", "template_id", "at"],
                name="run_statistic_once",
            )
        ]
        indexes = [models.Index(fields=["resolution_s", "at"], name="run_statistic_age")]

    def __str__(self) -> str:
        return f"{self.at} {self.workspace_id} {self.template_id}"


class EndedRun(models.Model):
    """A run that ended and is not counted in the statistics yet; a trigger inserts it."""

    run_id = models.CharField(max_length=64)

    def __str__(self) -> str:
        return self.run_id


class LoadSample(models.Model):
    """When the load was observed last: one row, by which one scheduler at a time observes it."""

    sampled_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.sampled_at)
