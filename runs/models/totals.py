"""Counts of runs, maintained by database triggers (`runs.queries.totals`)."""

from __future__ import annotations

from django.db import models


class RunTotal(models.Model):
    """The number of visible runs of a workspace, by template and status; rows of `RunTotalChange`
    are not added yet.

    Attributes:
        entered: how many runs ever came into the status; it only grows.
    """

    workspace_id = models.CharField(max_length=64)
    template_id = models.CharField(max_length=128)
    status = models.CharField(max_length=16)
    number = models.BigIntegerField()
    entered = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace_id", "template_id", "status"], name="run_total_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.status}"


class RunTotalChange(models.Model):
    """A change to add to the totals: a run was submitted (`was` is None), changed its status, or
    was hidden or deleted (`became` is None).
    """

    workspace_id = models.CharField(max_length=64)
    template_id = models.CharField(max_length=128)
    was = models.CharField(max_length=16, null=True)
    became = models.CharField(max_length=16, null=True)
    number = models.IntegerField()

    def __str__(self) -> str:
        return f"{self.was} -> {self.became}"
