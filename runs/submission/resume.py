"""A run that waits for a person goes on once its question was settled, whatever was said."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from decisions.authorization.confirmations import expire_due
from decisions.infra.clock import now_ms
from decisions.models import Confirmation, ConfirmationStatus
from runs.lifecycle.changes import Transition
from runs.lifecycle.transition import apply
from runs.models import Run, RunStatus, Task, TaskStatus
from runs.queue import outbox

TAKEOVER = "takeover"  # what a run waits for whose page a person has
AT_ONCE = 500  # decisions that one statement asks about


def resume_after_decision(confirmation: Confirmation, **_signal: Any) -> bool:
    """Let the run of a settled question go on, in the transaction that settles it; its step hears
    what was said (receiver of `decision_resolved`).
    """
    decision = confirmation.decision
    if decision.run_id is None:
        return False
    run = Run.objects.filter(
        id=decision.run_id, status=RunStatus.RUNNING, ready=False, lease_owner__isnull=True
    ).first()
    if run is None or (run.waiting_for or {}).get("decisionId") != decision.pk:
        return False  # it was canceled, or goes on already
    guard = {
        "status": RunStatus.RUNNING,
        "ready": False,
        "lease_owner": None,
        "epoch": run.epoch,
    }
    if apply(Transition(run, guard, {"ready": True, "waiting_for": None})) is None:
        return False
    outbox.put(run)
    return True


def waiting_runs() -> QuerySet[Run]:
    """Return the runs that wait for a person."""
    return Run.objects.filter(
        ended_at__isnull=True,
        status=RunStatus.RUNNING,
        ready=False,
        lease_owner__isnull=True,
        waiting_for__type="confirmation",
    )


def resume_settled_runs() -> int:
    """End questions that nobody answered in time, and let runs go on whose question was settled
    without their hearing it; return how many of these. Commits; any number at once is safe.
    """
    expire_due()
    asked = list(waiting_runs().values_list("waiting_for__decisionId", flat=True))
    woken = 0
    for first in range(0, len(asked), AT_ONCE):
        settled = Confirmation.objects.select_related("decision").filter(
            decision_id__in=asked[first : first + AT_ONCE]
        )
        for confirmation in settled.exclude(status=ConfirmationStatus.WAITING):
            with transaction.atomic():
                woken += resume_after_decision(confirmation)
    return woken + _let_unanswered_go_on()


def _let_unanswered_go_on() -> int:
    """Let runs go on whose question nobody answered in time: they hear that."""
    rows = Run.objects.filter(
        ended_at__isnull=True,
        status=RunStatus.RUNNING,
        ready=False,
        lease_owner__isnull=True,
        waiting_for__type="answer",
        waiting_for__expiresAt__lte=now_ms(),
    )
    return sum(_unanswered(run) for run in rows)


def _unanswered(run: Run) -> bool:
    guard = {
        "status": RunStatus.RUNNING,
        "ready": False,
        "lease_owner": None,
        "epoch": run.epoch,
    }
    with transaction.atomic():
        if apply(Transition(run, guard, {"ready": True, "waiting_for": None})) is None:
            return False
        outbox.put(run)
    return True


def resume_after_takeover(run: Run) -> bool:
    """Let a run go on that waited while a person had its page, in the caller's transaction; tell
    whether it waited for that.
    """
    if (run.waiting_for or {}).get("type") != TAKEOVER:
        return False
    guard = {
        "status": RunStatus.RUNNING,
        "ready": False,
        "lease_owner": None,
        "epoch": run.epoch,
    }
    if apply(Transition(run, guard, {"ready": True, "waiting_for": None})) is None:
        return False
    run.ready = True
    outbox.put(run)
    return True


def resume_if_takeover_ended(run_id: str) -> None:
    """Let a run go on whose page was given back before it had come to wait, in the transaction in
    which it comes to.
    """
    run = Run.objects.get(id=run_id)
    tasks = Task.objects.select_for_update().filter(id=run.task_id)
    if not any(task.status == TaskStatus.TAKEOVER for task in tasks):
        resume_after_takeover(run)
