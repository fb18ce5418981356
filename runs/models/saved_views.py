"""Views of the list of runs that an operator has saved: search, filters and order, by name."""

from __future__ import annotations

from django.db import models


class SavedView(models.Model):
    """A query of the list of runs that its owner alone sees.

    Attributes:
        owner_id: the key of its owner; not a relation, because processes without the admin, such as
            `mcp_stdio`, have no table of users.
        query: the list's query string, without the page.
    """

    owner_id = models.BigIntegerField()
    name = models.CharField(max_length=64)
    query = models.CharField(max_length=2000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner_id", "name"], name="saved_view_name_once")
        ]

    def __str__(self) -> str:
        return self.name
