"""A run that asked something hears the answer and goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.errors import InvalidInput
from decisions.identity.principals import Principal
from runs.models import ACTIVE, ANSWER, Run
from runs.queries.visibility import visible_run
from runs.queue import outbox
from runs.signals import run_of_task_answered

ANSWER_MAX = 65_536  # characters


def answer_run(
    *,
    principal: Principal,
    run_id: str,
    answer: str,
    question_expires_at: int | None = None,
    also_write: Callable[[Run], None] | None = None,
) -> dict[str, Any]:
    """Give a run the answer that it waits for, and let it go on. Commits.

    Args:
        asked_until: `waitingFor.expiresAt` of the question that is answered; where the run asks
            another one by now, nothing is said to it.
        beside: writes what belongs to the answer, in its transaction, behind the run's row; without
            it the run's task is told.

    Raises:
        RunNotFound: As `visible_run`.
        InvalidInput: The run does not wait for this answer: it says what it does instead.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("runs:write")
    run = visible_run(principal, run_id)
    _check_asks(run, question_expires_at)
    approval = admit_call(
        tool_call_request(principal, "answer_task_run", {"runId": run_id, "answer": answer})
    )
    with transaction.atomic():
        use_approval(approval)
        _take(run, answer)
        if also_write is not None:
            also_write(run)
        elif run.task_id is not None:
            run_of_task_answered.send(sender=Run, run=run, principal=principal, answer=answer)
        place = run.tenant_id, run.workspace_id
        said = {"characters": len(answer)}
        record(AuditEvent("run.answered", principal.id, "run", run.id, *place, said))
        outbox.put(run)
    return {"success": True, "runId": run.id, "status": run.status}


def _check_asks(run: Run, question_expires_at: int | None) -> None:
    waiting = run.waiting_for or {}
    if waiting.get("type") == "answer" and question_expires_at in (None, waiting.get("expiresAt")):
        return
    raise InvalidInput(f"This run does not wait for this answer; {_instead(run, waiting)}.")


def _take(run: Run, answer: str) -> None:
    # The epoch too: every wait has its own, and the next one may be another question's.
    waiting = Run.objects.filter(id=run.id, epoch=run.epoch, waiting_for__isnull=False, ready=False)
    told = {**run.options, ANSWER: answer}
    if not waiting.update(ready=True, waiting_for=None, options=told):
        raise InvalidInput("Somebody else answered first; yours was not taken.")


def _instead(run: Run, waiting: dict[str, Any]) -> str:
    """Return in words what a run does instead of waiting for an answer."""
    if run.status not in ACTIVE:
        return f"it has ended ({run.status})"
    if waiting.get("type") == "answer":
        return "that question is over, and it asks another one now"
    if waiting:
        return f"it waits for {waiting['type']}"
    if ANSWER in run.options:
        return "its question was answered already, and it goes on"
    return f"it is {run.status} and asks nothing"
