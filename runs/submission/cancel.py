"""Cancel a run."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.authorization.confirmations import withdraw
from decisions.identity.principals import Principal
from decisions.models import Confirmation
from runs.journal.outcome import canceled_columns
from runs.lifecycle.changes import Transition
from runs.lifecycle.state_machine import InvalidTransition, move
from runs.models import Run, RunStatus
from runs.queries.visibility import visible_run


def cancel_run(*, principal: Principal, run_id: str, reason: str = "") -> dict[str, Any]:
    """Cancel a run. Commits; its worker stops within a second.

    Returns {success: true, runId, status}, or {success: false, runId, status, reason} for a run
    that had already ended.

    Raises:
        RunNotFound: As `visible_run`.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("runs:write")
    visible_run(principal, run_id)
    approval = admit_call(tool_call_request(principal, "cancel_task_run", {"runId": run_id}))
    run = cancel_authorized_run(run_id, by=principal.id, reason=reason, approval=approval)
    if run is None:
        run = visible_run(principal, run_id)
        message = f"The run had already ended: {run.status}."
        return {"success": False, "runId": run.id, "status": run.status, "reason": message}
    return {"success": True, "runId": run.id, "status": RunStatus.CANCELED.value}


def cancel_authorized_run(
    run_id: str, *, by: str, reason: str, approval: Confirmation | None = None
) -> Run | None:
    """Cancel a run without evaluating policy, and use the approval. Commits.

    Returns the run as it was before, or None if it had ended.
    """
    while (run := Run.objects.filter(id=run_id, ended_at__isnull=True).first()) is not None:
        values = canceled_columns(run, by=by, reason=reason)
        # The guard on the epoch: a worker that suspends the run meanwhile raises it. Its new
        # confirmation was not there to be withdrawn, and would stay open.
        guard = {"status": RunStatus(run.status), "epoch": run.epoch}
        change = Transition(run, guard, values, abort_code="RUN_CANCELED")
        data = {"reason": reason, "actor": by}
        try:
            with transaction.atomic():
                use_approval(approval)
                # Confirmations are locked before the run's row, as in deciding one: no deadlock.
                withdraw(run_id=run.id, by=by)
                move(change, RunStatus.CANCELED, actor=by, data=data)
        except InvalidTransition:
            continue  # a worker changed the run first
        return run
    return None
