"""The Django application `artifacts`."""

from __future__ import annotations

from django.apps import AppConfig


class ArtifactsConfig(AppConfig):
    """Artifacts and their bytes."""

    name = "artifacts"
    default_auto_field = "django.db.models.BigAutoField"
