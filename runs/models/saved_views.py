"""Views of the list of runs that an operator has saved: search, filters and order, by name."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class SavedView(models.Model):
    """A query of the list of runs that its owner alone sees.

    Attributes:
        query: the list's query string, without the page.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        db_constraint=False,  # an older version deletes users without their views
        related_name="+",
    )
    name = models.CharField(max_length=64)
    query = models.CharField(max_length=2000, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="saved_view_name_once")
        ]

    def __str__(self) -> str:
        return self.name
