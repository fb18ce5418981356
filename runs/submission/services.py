"""What callers can do with runs; every door comes through here."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from decisions.audit.record import AuditEvent
from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.authorization.confirmations import withdraw
from decisions.errors import RunNotFound
from decisions.identity.principals import Principal
from decisions.infra.ids import new_id
from decisions.models import Confirmation
from runs.failpoints import hit
from runs.journal.outcome import canceled_columns
from runs.lifecycle.changes import NewEvent, Transition
from runs.lifecycle.in_flight_calls import DirectCallOfRun
from runs.lifecycle.slots import count_free_slots
from runs.lifecycle.status import InvalidTransition, move
from runs.lifecycle.step_rows import new_row
from runs.lifecycle.transition import insert_run
from runs.models import ACTIVE, APPROVED, Run, RunStatus
from runs.queries.visibility import is_past_ttl, visible_run
from runs.queue import outbox
from runs.sessions import services as sessions
from runs.submission.idempotency import (
    KeyHolder,
    answer_key_holder,
    answer_new,
    answer_repeated,
    claim_key,
    find_key_holder,
)
from runs.submission.retry import check_retriable, copy_succeeded_steps
from runs.submission.secret_inputs import sealed_row
from runs.submission.validation import (
    Submission,
    SubmittedRun,
    Turn,
    use_of_submission,
    validate_submission,
)
from runs.webhooks.services import check_webhook_option


def submit_run(
    *,
    principal: Principal,
    template_id: str,
    inputs: Mapping[str, Any],
    session_id: str | None = None,
    options: Mapping[str, Any] | None = None,
    direct_call: DirectCallOfRun | None = None,
    turn: Turn | None = None,
) -> SubmittedRun:
    """Accept a run: run, steps, key, event, audit and doorbell in one transaction, committed before
    returning.

    With options.idempotencyKey, the same call again returns the same run (S0 §4.1.1).

    Args:
        carries: the direct call that the run is made for: policy is asked about it, its approval is
            good for the run's one step, and a new run tells that it begins.
        turn: the message of a task that the run is made for.

    Raises:
        Refused: As `judge_submission`; nothing was written but the audit of a refusal.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    options = options or {}
    is_auto_mode = options.get("mode", "auto") == "auto"
    submission = validate_submission(
        principal=principal,
        template_id=template_id,
        inputs=inputs,
        session_id=session_id,
        options=options,
        slot_is_free=is_auto_mode and count_free_slots() > 0,
    )
    check_webhook_option(principal, options.get("webhookId"))
    first = find_key_holder(submission)
    if first is None:  # what was done already is not asked about again
        submission, approval = _admitted(submission, direct_call, turn.key if turn else "")
        run = _new_run(submission)
        first = _write_once(run, submission, approval, direct_call, turn)
        if first is None:
            return answer_new(run, is_auto_mode=is_auto_mode)
    return answer_key_holder(first, submission, is_auto_mode=is_auto_mode)


def _admitted(
    submission: Submission, direct_call: DirectCallOfRun | None, key: str
) -> tuple[Submission, Confirmation | None]:
    """Ask policy about a submit, or about the direct call that the run is made for."""
    use = (
        direct_call.request
        if direct_call
        else use_of_submission(submission, key=submission.key or key)
    )
    approval = admit_call(use)
    if direct_call is None or approval is None:
        return submission, approval
    told = {**submission.options, APPROVED: approval.decision_id}
    return replace(submission, options=told), approval


def _write_once(
    run: Run,
    submission: Submission,
    approval: Confirmation | None,
    direct_call: DirectCallOfRun | None,
    turn: Turn | None,
) -> KeyHolder | None:
    """Write the run, use its approval up and take its key, or return the run that has the key."""
    if submission.key is None and approval is None and direct_call is None and turn is None:
        _write(run, submission)
        return None
    with transaction.atomic():
        first = claim_key(submission, run.id) if submission.key is not None else None
        if first is None:
            use_approval(approval)
            if turn is not None:
                turn.take(run)
            _write(run, submission)
            if direct_call is not None:
                direct_call.start_with(run.id)
    return first


def _new_run(submission: Submission, *, retry_of: str | None = None) -> Run:
    now = datetime.now(UTC)
    principal, session = submission.principal, submission.session
    return Run(
        id=new_id("run_"),
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        principal_id=principal.id,
        user_id=principal.user_id,
        trust=principal.trust,
        template_id=submission.template.template_id,
        template_version=submission.template.version,
        mode=submission.mode,
        inputs=submission.inputs,
        options=submission.stored_options,
        session_id=session.id if session else new_id("sess_"),
        owns_session=session is None,
        shared=session is None and submission.template.shares_steps(submission.inputs),
        holds_secrets=bool(submission.secrets),
        status=RunStatus.QUEUED,
        total_steps=len(submission.plan),
        timeout_ms=submission.timeout_ms,
        retry_of=retry_of,
        last_seq=1,
        created_at=now,
        updated_at=now,
    )


def _write(run: Run, submission: Submission) -> None:
    """Write the run and all that belongs to it, in the caller's transaction or one of its own."""
    steps = [new_row(run, index, step) for index, step in enumerate(submission.plan)]
    data = {"templateId": run.template_id, "totalSteps": run.total_steps, "mode": run.mode}
    if run.retry_of:
        data["retryOf"] = run.retry_of
    told = {**data, "inputsDigest": submission.inputs_digests[0]}
    place = run.tenant_id, run.workspace_id
    deed = AuditEvent("run.submitted", submission.principal.id, "run", run.id, *place, told)
    hit("before_submit")
    queued, queue = NewEvent("run.queued", data), outbox.queue_of(run)
    with ExitStack() as together:
        if submission.makes_session or submission.secrets:
            together.enter_context(transaction.atomic())
        if submission.makes_session and submission.session is not None:
            sessions.insert_session(submission.session, actor=run.principal_id, run_id=run.id)
        insert_run(run, steps, queued, deed, outbox.outbox_entry(run, queue) if run.ready else None)
        if submission.secrets:
            sealed_row(run.id, submission.secrets, submission.plan).save(force_insert=True)
    if run.ready:
        outbox.send_wakeup_after_commit(queue, run.id)


def cancel_run(*, principal: Principal, run_id: str, reason: str = "") -> dict[str, Any]:
    """Cancel a run: at once for every reader, within a second for the worker that carries it out.

    Returns {success: true, runId, status}, or {success: false, runId, status, reason} for a run
    that had ended.

    Raises:
        RunNotFound: Unknown, past its time, or another workspace's.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    principal.require("runs:write")
    visible_run(principal, run_id)
    approval = admit_call(tool_call_request(principal, "cancel_task_run", {"runId": run_id}))
    run = stop_run(run_id, by=principal.id, reason=reason, approval=approval)
    if run is None:
        run = visible_run(principal, run_id)
        told = f"The run had already ended: {run.status}."
        return {"success": False, "runId": run.id, "status": run.status, "reason": told}
    return {"success": True, "runId": run.id, "status": RunStatus.CANCELED.value}


def stop_run(
    run_id: str, *, by: str, reason: str, approval: Confirmation | None = None
) -> Run | None:
    """Cancel a run for whoever may, and return it as it stood; None where it had ended. Commits.

    The approval, if there is one, is used up with it.
    """
    while (run := Run.objects.filter(id=run_id, ended_at__isnull=True).first()) is not None:
        values = canceled(run, by=by, reason=reason)
        # Its epoch too: a worker that comes to ask a person meanwhile raises it, and its question,
        # which was not there to be withdrawn, would stay open.
        guard = {"status": RunStatus(run.status), "epoch": run.epoch}
        change = Transition(run, guard, values, abort_code="RUN_CANCELED")
        about = {"reason": reason, "actor": by}
        try:
            with transaction.atomic():
                use_approval(approval)
                # Before the run's row, as whoever answers does: no two wait for each other.
                withdraw(run_id=run.id, by=by)
                move(change, RunStatus.CANCELED, actor=by, data=about)
        except InvalidTransition:
            continue  # a worker was first: look again
        return run
    return None


def retry_run(
    *, principal: Principal, run_id: str, also_past_its_time: bool = False
) -> SubmittedRun:
    """Submit a failed or canceled run again as a new run that takes over the steps that succeeded.

    Commits before returning. Asking twice returns the same new run (`retry_of` is unique). The
    admin, which sees runs longer than the API does, may retry one that is past its time.

    Raises:
        RunNotFound: As `visible_run`.
        InvalidInput: It held credentials, which are not kept.
        Conflict: The run has not ended, or has nothing to retry.
    """
    principal.require("runs:write")
    old = Run.objects.filter(id=run_id, workspace_id=principal.workspace_id).first()
    if old is None or (is_past_ttl(old) and not also_past_its_time):
        raise RunNotFound(f"There is no run {run_id[:64]}.")
    check_retriable(old)
    options = {**old.requested_options, "mode": "async"}
    # Whoever retries it lends it no trust: a remote caller's addresses stay a remote caller's.
    principal = principal.with_trust("remote") if old.trust == "remote" else principal
    submission = validate_submission(
        principal=principal,
        template_id=old.template_id,
        inputs=old.inputs,
        session_id=None if old.owns_session else old.session_id,
        options=options,
        slot_is_free=False,
    )
    run = _new_run(submission, retry_of=old.id)
    made = Run.objects.filter(retry_of=old.id).first()
    if made is None:
        approval = admit_call(use_of_submission(submission, key=f"retry of {old.id}"))
        with transaction.atomic():
            # Of two retries at once one holds the old row; the other then finds the new run.
            list(Run.objects.select_for_update().filter(id=old.id))
            made = Run.objects.filter(retry_of=old.id).first()
            if made is None:
                use_approval(approval)
                _write(run, submission)
                copy_succeeded_steps(old, run)
    if made is not None:
        return answer_repeated(made)
    return answer_new(run)


def mark_async(run_id: str) -> None:
    """Note that a caller of mode auto was answered with the handle: the run is
    async from now on.
    """
    Run.objects.filter(id=run_id, status__in=ACTIVE).update(mode="async")
