"""Links that sign a person in at the admin site, once."""

from __future__ import annotations

from django.db import models


class LoginLink(models.Model):
    """One use of the admin site's front door; only a keyed digest of its token is kept."""

    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"link of {self.created_at:%Y-%m-%d %H:%M}"
