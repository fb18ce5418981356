"""The Django app `runners`."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RunnersConfig(AppConfig):
    """Tools and the targets that they run on."""

    name = "runners"
    verbose_name = _("Runners")
    default_auto_field = "django.db.models.BigAutoField"
