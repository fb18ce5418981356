"""Suspend a run that needs a person: it keeps no lease and no slot, and its clock stops.

Its status stays `running`. A confirmation is a decision of the core;
`runs.submission.resume` requeues the run once the wait has ended.
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
from decisions.foundation.infra.clock import to_ms
from runs.calls.shown_page import subject_of
from runs.events.types import EventType
from runs.failpoints import hit
from runs.journal import writer
from runs.journal.interruptions import NeedsAnswer, NeedsPerson, TakenOver
from runs.lifecycle.changes import NewEvent, Plus, StepChange
from runs.lifecycle.lease import Lease, LeaseLost
from runs.lifecycle.transition import apply
from runs.models import ANSWER, Run
from runs.submission.resume import TAKEOVER, resume_if_takeover_ended


def suspend(
    lease: Lease,
    wait: NeedsPerson | NeedsAnswer,
    left: tuple[Sequence[StepChange], Sequence[NewEvent]],
    *,
    active_ms: int,
    keeps_page: bool,
    delete_secrets: bool = False,
) -> None:
    """Request the confirmation or the answer, and suspend the run, in one transaction.

    Args:
        left: unwritten changes and events of the run's steps.
        keeps_page: this worker holds the run's page open, so no other worker may claim the run
            while this one is alive.
        delete_secrets: the last step that needed the run's secrets has ended.

    Raises:
        LeaseLost: The run is no longer under this lease; nothing was written.
    """
    run = lease.run
    transition = writer.build_transition(lease, left[0], active_ms=active_ms, events=left[1])
    hit("before_waiting")
    with transaction.atomic():
        waiting_for = _waiting_for(run, wait)
        data = {**waiting_for, **_call_data(wait)}
        scope = run.tenant_id, run.workspace_id
        event = AuditEvent("run.waiting", f"worker:{lease.worker_id}", "run", run.id, *scope, data)
        values = {
            **transition.values,
            "ready": False,
            "lease_owner": None,
            "epoch": Plus(1),
            "waiting_for": waiting_for,
            "pinned_worker": lease.worker_id if keeps_page else None,
        }
        values |= _without_answer(run)
        transition = replace(
            transition,
            values=values,
            free_slot=True,
            audit_events=[*transition.audit_events, event],
            events=[*transition.events, NewEvent(EventType.RUN_WAITING, data)],
            delete_secrets=delete_secrets,
        )
        if apply(transition) is None:
            raise LeaseLost(run.id)
        if isinstance(wait, TakenOver):
            resume_if_takeover_ended(run.id)
    hit("after_waiting")


def _without_answer(run: Run) -> dict[str, Any]:
    """Return the options without the answer to an earlier question, if there is one."""
    if ANSWER not in run.options:
        return {}
    return {"options": {name: value for name, value in run.options.items() if name != ANSWER}}


def _call_data(wait: NeedsPerson | NeedsAnswer) -> dict[str, Any]:
    if isinstance(wait, NeedsAnswer):
        return {}
    return {"step": wait.request.step_index, "tool": wait.request.tool}


def _waiting_for(run: Run, wait: NeedsPerson | NeedsAnswer) -> dict[str, Any]:
    """Return what the run waits for; request the confirmation of a call."""
    if isinstance(wait, NeedsAnswer):
        until = datetime.now(UTC) + timedelta(seconds=settings.CONFIRM_TTL_S)
        data: dict[str, Any] = {"type": "answer", "question": wait.question[:2000]}
        if wait.suggestions:
            data["suggestions"] = list(wait.suggestions)
        return {**data, "expiresAt": to_ms(until)}
    if isinstance(wait, TakenOver):
        return {
            "type": TAKEOVER,
            "taskId": run.task_id,
            "question": "A person has taken over the page; the run resumes after the takeover.",
        }
    authorization = wait.authorization
    confirmation = authorization.confirmation  # it waits already
    if confirmation is None:
        confirmation = authorize.request_confirmation(wait.request, authorization)
    step = f"step {(wait.request.step_index or 0) + 1} of {run.total_steps}"
    return {
        "type": "confirmation",
        "decisionId": confirmation.decision_id,
        "question": f"May {wait.request.tool} be called{subject_of(wait.request)}"
        f" ({run.template_id}, {step})?"
        f" {authorization.asks_again}".rstrip(),
        "expiresAt": to_ms(confirmation.expires_at),
    }
