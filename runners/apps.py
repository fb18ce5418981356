"""The Django application of the hands."""

from __future__ import annotations

from django.apps import AppConfig


class RunnersConfig(AppConfig):
    """Tools and the targets they run on."""

    name = "runners"
    default_auto_field = "django.db.models.BigAutoField"
