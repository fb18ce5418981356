"""One-time login links of the admin site."""

from __future__ import annotations

from django.db import models


class LoginLink(models.Model):
    """A one-time login link; only a keyed digest of its token is stored."""

    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"link of {self.created_at:%Y-%m-%d %H:%M}"
