"""How many runs there are (`runs.queries.totals`)."""

from __future__ import annotations

from django.db import models


class RunTotal(models.Model):
    """How many runs of a workspace are not hidden, by template and status, as far as
    `RunTotalChange` was folded (`runs.queries.totals`).

    Attributes:
        entered: how many ever came into the status; it only grows.
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
    """A run that came into sight, changed its status, or went out of sight
    (`runs.queries.totals`).
    """

    workspace_id = models.CharField(max_length=64)
    template_id = models.CharField(max_length=128)
    was = models.CharField(max_length=16, null=True)
    became = models.CharField(max_length=16, null=True)
    number = models.IntegerField()

    def __str__(self) -> str:
        return f"{self.was} -> {self.became}"
