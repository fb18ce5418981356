"""Record the answer to a waiting run's question and requeue the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.foundation.errors import InvalidInput
from decisions.identity.authority import acting_on, check_steers
from decisions.identity.principals import Principal
from runners.paired_browser.choice import SELECTED
from runs.models import ACTIVE, ANSWER, Run
from runs.queries.visibility import visible_run
from runs.queue import wakeups
from runs.signals import run_of_task_answered

MESSAGE_MAX = 65_536  # characters of an answer, and of a message of a task, which may be one


def answer_run(
    *,
    principal: Principal,
    run_id: str,
    answer: str,
    question_expires_at: int | None = None,
    also_write: Callable[[Run], None] | None = None,
) -> dict[str, Any]:
    """Record the answer that a run waits for, and requeue the run. Commits.

    Args:
        question_expires_at: `waitingFor.expiresAt` of the question that is answered; refused if the
            run waits for another question by now. None answers any question.
        also_write: writes further rows in the same transaction, after the run's row; without it
            the signal `run_of_task_answered` is sent for a run of a task.

    Raises:
        RunNotFound: As `visible_run`.
        Forbidden: As `authority.check_steers`.
        InvalidInput: The run does not wait for this answer.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("runs:write")
    run = visible_run(principal, run_id)
    principal = acting_on(principal, run)
    check_steers(principal, run, run.inputs.get(SELECTED))
    _check_waits(run, question_expires_at)
    approval = admit_call(
        tool_call_request(principal, "answer_task_run", {"runId": run_id, "answer": answer})
    )
    with transaction.atomic():
        use_approval(approval)
        _record_answer(run, answer)
        if also_write is not None:
            also_write(run)
        elif run.task_id is not None:
            run_of_task_answered.send(sender=Run, run=run, principal=principal, answer=answer)
        scope = run.tenant_id, run.workspace_id
        details = {"characters": len(answer)}
        record(AuditEvent("run.answered", principal.id, "run", run.id, *scope, details))
        wakeups.send_after_commit(run)
    return {"success": True, "runId": run.id, "status": run.status}


def _check_waits(run: Run, question_expires_at: int | None) -> None:
    waiting = run.waiting_for or {}
    if waiting.get("type") == "answer" and question_expires_at in (None, waiting.get("expiresAt")):
        return
    raise InvalidInput(f"This run does not wait for this answer: {_state_of(run, waiting)}.")


def _record_answer(run: Run, answer: str) -> None:
    # The guard on the epoch: a later suspension has another epoch, and maybe another question.
    waiting = Run.objects.filter(id=run.id, epoch=run.epoch, waiting_for__isnull=False, ready=False)
    if not waiting.update(ready=True, waiting_for=None, options={**run.options, ANSWER: answer}):
        raise InvalidInput("The question was answered already; this answer was not recorded.")


def _state_of(run: Run, waiting: dict[str, Any]) -> str:
    """Return what a run does instead of waiting for the answer, for an error message."""
    if run.status not in ACTIVE:
        return f"it has ended ({run.status})"
    if waiting.get("type") == "answer":
        return "that question has expired, and it asks another one now"
    if waiting:
        return f"it waits for {waiting['type']}"
    if ANSWER in run.options:
        return "its question was answered already"
    return f"it is {run.status} and asks nothing"
