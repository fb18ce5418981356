"""The Django application of the work."""

from __future__ import annotations

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """Runs and what executes them."""

    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"
