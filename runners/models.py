"""What the hands keep: browser sessions that outlive a run."""

from __future__ import annotations

from django.db import models


class BrowserSession(models.Model):
    """A named browser session; it lives in one worker at a time (mechanisms 9)."""

    id = models.CharField(primary_key=True, max_length=64)
    tenant_id = models.CharField(max_length=64)
    workspace_id = models.CharField(max_length=64, db_index=True)
    name = models.CharField(max_length=128)
    worker_id = models.CharField(max_length=64, null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    closed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name
