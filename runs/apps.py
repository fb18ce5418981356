"""The Django application of the work."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from decisions.signals import confirmation_opened, decision_resolved
from runs.queries.totals import ensure_totals
from runs.signals import run_of_task_answered, run_of_task_changed


class RunsConfig(AppConfig):
    """Runs and what executes them."""

    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Have the counting of runs looked after whenever the tables may have changed, and hear
        what people are asked and what they decide, and how runs of tasks go.
        """
        post_migrate.connect(ensure_totals, sender=self)
        decision_resolved.connect(_go_on)
        confirmation_opened.connect(_tell_of)
        run_of_task_changed.connect(_follow)
        run_of_task_answered.connect(_note_answer)


# What they import has models, which are not there when this module is loaded, and is not needed
# before the first question: an agent host waits for mcp_stdio to start.


def _go_on(**signal: Any) -> bool:
    from runs.submission.resume import resume_after_decision

    return resume_after_decision(**signal)


def _tell_of(**signal: Any) -> None:
    from runs.webhooks.confirmation_messages import create_confirmation_deliveries

    create_confirmation_deliveries(**signal)


def _follow(**signal: Any) -> None:
    from runs.conversations.run_changes import apply_run_change

    apply_run_change(**signal)


def _note_answer(**signal: Any) -> None:
    from runs.conversations.messages import record_answer

    record_answer(**signal)
