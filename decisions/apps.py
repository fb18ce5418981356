"""The Django application `decisions`."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DecisionsConfig(AppConfig):
    """Principals, policy, confirmations, the Continuity API, the audit log."""

    name = "decisions"
    verbose_name = _("Decisions")
    default_auto_field = "django.db.models.BigAutoField"
