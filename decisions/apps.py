"""The Django application `decisions`."""

from __future__ import annotations

from django.apps import AppConfig


class DecisionsConfig(AppConfig):
    """Principals, policy, confirmations, the Continuity API, the audit log."""

    name = "decisions"
    default_auto_field = "django.db.models.BigAutoField"
