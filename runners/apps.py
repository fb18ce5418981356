"""The Django app `runners`."""

from __future__ import annotations

from django.apps import AppConfig


class RunnersConfig(AppConfig):
    """Tools and the targets that they run on."""

    name = "runners"
    default_auto_field = "django.db.models.BigAutoField"
