"""A run that needs a person comes to wait: without a lease, a slot or a running clock.

Its status stays `running`. What is being asked is a decision of the ground;
`runs.submission.resume` hears
when that was settled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from decisions.audit.record import AuditEvent
from decisions.authorization import authorize
from decisions.infra.clock import to_ms
from runs.events.types import EventType
from runs.failpoints import hit
from runs.journal import writer
from runs.journal.interruptions import NeedsAnswer, NeedsPerson, TakenOver
from runs.lifecycle.changes import NewEvent, Plus, StepChange
from runs.lifecycle.transition import apply
from runs.models import ANSWER, Run
from runs.queue.leases import Lease, LeaseLost
from runs.submission.resume import TAKEOVER, resume_if_takeover_ended


def pause(
    lease: Lease,
    asked: NeedsPerson | NeedsAnswer,
    left: tuple[Sequence[StepChange], Sequence[NewEvent]],
    *,
    active_ms: int,
    keeps_page: bool,
    delete_secrets: bool = False,
) -> None:
    """Ask a person, and leave the run waiting, with what its steps left: one transaction.

    Args:
        keeps_page: its page stays open here: nobody else goes on with it while this worker lives.
        forget_secrets: the last step that needed the run's secrets is over.

    Raises:
        LeaseLost: The run is not ours any more; nothing was written.
    """
    written = writer.lines(lease, left[0], active_ms=active_ms, events=left[1])
    hit("before_waiting")
    with transaction.atomic():
        waiting_for = _waiting_for(lease.run, asked)
        data = {**waiting_for, **_about(asked)}
        place = lease.run.tenant_id, lease.run.workspace_id
        deed = AuditEvent(
            "run.waiting", f"worker:{lease.worker_id}", "run", lease.run.id, *place, data
        )
        values = {
            **written.values,
            "ready": False,
            "lease_owner": None,
            "epoch": Plus(1),
            "waiting_for": waiting_for,
            "pinned_worker": lease.worker_id if keeps_page else None,
        }
        values |= _without_answer(lease.run)
        waiting = replace(
            written,
            values=values,
            free_slot=True,
            audit_events=[*written.audit_events, deed],
            events=[*written.events, NewEvent(EventType.RUN_WAITING, data)],
            delete_secrets=delete_secrets,
        )
        if apply(waiting) is None:
            raise LeaseLost(lease.run.id)
        if isinstance(asked, TakenOver):
            resume_if_takeover_ended(lease.run.id)
    hit("after_waiting")


def _without_answer(run: Run) -> dict[str, Any]:
    """Return the column that has no answer any more: it was to an earlier question."""
    if ANSWER not in run.options:
        return {}
    return {"options": {name: told for name, told in run.options.items() if name != ANSWER}}


def _about(asked: NeedsPerson | NeedsAnswer) -> dict[str, Any]:
    if isinstance(asked, NeedsAnswer):
        return {}
    return {"step": asked.use.step_index, "tool": asked.use.tool}


def _waiting_for(run: Run, asked: NeedsPerson | NeedsAnswer) -> dict[str, Any]:
    """Return what the run waits for; a person is asked here to confirm a call."""
    if isinstance(asked, NeedsAnswer):
        until = datetime.now(UTC) + timedelta(seconds=settings.CONFIRM_TTL_S)
        told: dict[str, Any] = {"type": "answer", "question": asked.question[:2000]}
        if asked.suggestions:
            told["suggestions"] = list(asked.suggestions)
        return {**told, "expiresAt": to_ms(until)}
    if isinstance(asked, TakenOver):
        return {
            "type": TAKEOVER,
            "taskId": run.task_id,
            "question": "A person has the page; the run goes on when it is given back.",
        }
    standing = asked.ruling.confirmation if asked.ruling.is_waiting else None
    confirmation = standing or authorize.request_confirmation(asked.use, asked.ruling)
    step = f"step {(asked.use.step_index or 0) + 1} of {run.total_steps}"
    return {
        "type": "confirmation",
        "decisionId": confirmation.decision_id,
        "question": f"May {asked.use.tool} be called ({run.template_id}, {step})?",
        "expiresAt": to_ms(confirmation.expires_at),
    }
