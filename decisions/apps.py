"""The Django application of the ground."""

from __future__ import annotations

from django.apps import AppConfig


class DecisionsConfig(AppConfig):
    """Principals, policy, audit."""

    name = "decisions"
    default_auto_field = "django.db.models.BigAutoField"
