"""Requeue suspended runs: once a confirmation is decided, a question expires, or a takeover ends.

A suspended run has the status running, no lease, and `ready` false; setting `ready` lets a worker
claim it.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from decisions.authorization.confirmations import expire_due
from decisions.foundation.infra.clock import now_ms
from decisions.models import Confirmation, ConfirmationStatus
from runs.lifecycle.changes import Transition
from runs.lifecycle.transition import apply
from runs.models import Run, RunStatus, Task, TaskStatus
from runs.queue import wakeups

TAKEOVER = "takeover"  # `waitingFor.type` of a run whose page a person has taken over
BATCH = 500  # decisions per query


def resume_after_decision(confirmation: Confirmation, **_signal: Any) -> bool:
    """Requeue the run that waits for this confirmation, in the transaction that decides it; return
    whether there was one (receiver of `decision_resolved`).
    """
    decision = confirmation.decision
    if decision.run_id is None:
        return False
    run = Run.objects.filter(
        id=decision.run_id, status=RunStatus.RUNNING, ready=False, lease_owner__isnull=True
    ).first()
    if run is None or (run.waiting_for or {}).get("decisionId") != decision.pk:
        return False  # it was canceled or resumed meanwhile
    return _requeue(run)


def _requeue(run: Run) -> bool:
    """Make a suspended run claimable in the caller's transaction; return False if it is suspended
    no longer.
    """
    guard = {
        "status": RunStatus.RUNNING,
        "ready": False,
        "lease_owner": None,
        "epoch": run.epoch,
    }
    if apply(Transition(run, guard, {"ready": True, "waiting_for": None})) is None:
        return False
    wakeups.send_after_commit(run)
    return True


def waiting_runs() -> QuerySet[Run]:
    """Return the runs that wait for a confirmation."""
    return Run.objects.filter(
        ended_at__isnull=True,
        status=RunStatus.RUNNING,
        ready=False,
        lease_owner__isnull=True,
        waiting_for__type="confirmation",
    )


def resume_settled_runs() -> int:
    """Expire confirmations and questions that are due, and requeue suspended runs that wait for
    nothing any more; return how many runs were requeued. Commits; safe to run concurrently.
    """
    expire_due()
    decision_ids = list(waiting_runs().values_list("waiting_for__decisionId", flat=True))
    requeued = 0
    for first in range(0, len(decision_ids), BATCH):
        decided = Confirmation.objects.select_related("decision").filter(
            decision_id__in=decision_ids[first : first + BATCH]
        )
        for confirmation in decided.exclude(status=ConfirmationStatus.WAITING):
            with transaction.atomic():
                requeued += resume_after_decision(confirmation)
    return requeued + _resume_unanswered()


def _resume_unanswered() -> int:
    """Requeue runs whose question was not answered in time; their step gets no answer."""
    runs = Run.objects.filter(
        ended_at__isnull=True,
        status=RunStatus.RUNNING,
        ready=False,
        lease_owner__isnull=True,
        waiting_for__type="answer",
        waiting_for__expiresAt__lte=now_ms(),
    )
    requeued = 0
    for run in runs:
        with transaction.atomic():
            requeued += _requeue(run)
    return requeued


def resume_after_takeover(run: Run) -> bool:
    """Requeue a run that waits for the end of a takeover, in the caller's transaction; return
    whether it did.
    """
    if (run.waiting_for or {}).get("type") != TAKEOVER or not _requeue(run):
        return False
    run.ready = True
    return True


def resume_if_takeover_ended(run_id: str) -> None:
    """Requeue a run whose takeover ended before the run was suspended for it, in the transaction
    that suspends it.
    """
    run = Run.objects.get(id=run_id)
    tasks = Task.objects.select_for_update().filter(id=run.task_id)
    if not any(task.status == TaskStatus.TAKEOVER for task in tasks):
        resume_after_takeover(run)
