"""E-mails about what waits for a person."""

from __future__ import annotations

from django.db import models


class WaitingEmail(models.Model):
    """A decision or question about which an e-mail is sent, once.

    Attributes:
        key: of the decision or question (`runs.queries.waiting.WaitingRow`).
        next_try_at: when it is due; while a mailer sends it, when another one may.
        sent_at: when the mail server accepted it.
    """

    key = models.CharField(max_length=128, unique=True)
    attempts = models.IntegerField(default=0)
    next_try_at = models.DateTimeField()
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)
    error = models.CharField(max_length=200, default="", blank=True)

    def __str__(self) -> str:
        return self.key
