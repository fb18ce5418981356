"""The Django application of the work."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from decisions.signals import decision_resolved
from runs.totals import keep_totals


class RunsConfig(AppConfig):
    """Runs and what executes them."""

    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have the counting of runs looked after whenever the tables may have changed, and hear
        what people decide.
        """
        post_migrate.connect(keep_totals, sender=self)
        from runs.resuming import go_on

        decision_resolved.connect(go_on)
