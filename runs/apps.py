"""The Django application of the work."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from decisions.signals import confirmation_opened, decision_resolved
from runs.totals import keep_totals


class RunsConfig(AppConfig):
    """Runs and what executes them."""

    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have the counting of runs looked after whenever the tables may have changed, and hear
        what people are asked and what they decide.
        """
        post_migrate.connect(keep_totals, sender=self)
        # They have models, which are not there when this module is loaded.
        from runs.resuming import go_on
        from runs.webhooks.asking import tell_of

        decision_resolved.connect(go_on)
        confirmation_opened.connect(tell_of)
