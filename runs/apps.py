"""The Django application of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _

from decisions.signals import (
    confirmation_opened,
    decision_resolved,
    provide_call_information,
    token_users_changed,
)
from runs.queries.totals import ensure_totals
from runs.signals import run_of_task_answered, run_of_task_changed

if TYPE_CHECKING:
    from decisions.authorization.call_information import CallInformation


class RunsConfig(AppConfig):
    """Runs: templates, execution, sessions, tasks and their APIs."""

    name = "runs"
    verbose_name = _("Runs")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the signals (migrations, confirmations, changes of runs of tasks), and provide
        what authorization reads of runs and targets.
        """
        provide_call_information(_call_information)
        post_migrate.connect(ensure_totals, sender=self)
        decision_resolved.connect(_resume_after_decision)
        confirmation_opened.connect(_create_confirmation_deliveries)
        token_users_changed.connect(_limit_webhooks)
        for changed in (confirmation_opened, decision_resolved):
            changed.connect(_publish_decision)
        run_of_task_changed.connect(_apply_run_change)
        run_of_task_answered.connect(_record_answer)


# The functions below import late: their modules have models, which are not loaded yet when this
# module is, and they would slow the start of mcp_stdio, for which agent hosts wait.


def _resume_after_decision(**signal: Any) -> bool:
    from runs.submission.resume import resume_after_decision

    return resume_after_decision(**signal)


def _create_confirmation_deliveries(**signal: Any) -> None:
    from runs.webhooks.confirmation_messages import create_confirmation_deliveries

    create_confirmation_deliveries(**signal)


def _limit_webhooks(**signal: Any) -> None:
    from runs.webhooks.services import limit_webhooks

    limit_webhooks(**signal)


def _publish_decision(**signal: Any) -> None:
    from runs.events.notify import publish_change_after_commit

    publish_change_after_commit("decision", str(signal["confirmation"].decision_id))


def _apply_run_change(**signal: Any) -> None:
    from runs.conversations.run_changes import apply_run_change

    apply_run_change(**signal)


def _record_answer(**signal: Any) -> None:
    from runs.conversations.messages import record_answer

    record_answer(**signal)


def _call_information() -> CallInformation:
    from decisions.authorization.call_information import CallInformation
    from runners.targets.cache import state_of_target
    from runs.calls.information.decision_context import basis_of_decision, context_of_decision
    from runs.calls.information.known_calls import list_known_calls

    return CallInformation(
        context_of=context_of_decision,
        basis_of=basis_of_decision,
        target_state_of=state_of_target,
        list_known_calls=list_known_calls,
    )
