"""Submit, cancel and retry runs; REST, MCP and the admin call these services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import transaction

from decisions.audit.record import AuditEvent
from decisions.authorization.authorize import (
    admit_call,
    authorize_cached,
    tool_call_request,
    use_approval,
)
from decisions.authorization.confirmations import withdraw
from decisions.foundation.errors import RunNotFound
from decisions.foundation.infra.ids import new_id
from decisions.foundation.infra.preconditions import Precondition
from decisions.foundation.security.masking import input_masker
from decisions.identity.authority import acting_on, seen_by
from decisions.identity.principals import Principal
from decisions.models import Confirmation
from runs.failpoints import hit
from runs.journal.outcome import canceled_columns
from runs.lifecycle.changes import NewEvent, Transition
from runs.lifecycle.state_machine import InvalidTransition, move
from runs.lifecycle.step_rows import new_row
from runs.lifecycle.transition import insert_run
from runs.models import ACTIVE, APPROVED, Run, RunStatus
from runs.queries.visibility import is_past_ttl, visible_run
from runs.queue import wakeups
from runs.queue.slots import count_free_slots
from runs.sessions import services as sessions
from runs.submission.idempotency import (
    KeyHolder,
    answer_key_holder,
    answer_submit,
    claim_key,
    find_key_holder,
)
from runs.submission.retry import check_retriable, copy_succeeded_steps
from runs.submission.secret_inputs import sealed_row
from runs.submission.validation import (
    PendingMessage,
    Submission,
    SubmittedRun,
    submission_request,
    validate_submission,
)
from runs.webhooks.services import check_webhook_option

if TYPE_CHECKING:
    from runs.calls.record import DirectCall


def submit_run(
    *,
    principal: Principal,
    template_id: str,
    inputs: Mapping[str, Any],
    session_id: str | None = None,
    options: Mapping[str, Any] | None = None,
    direct_call: DirectCall | None = None,
    message: PendingMessage | None = None,
    again_of: str | None = None,
) -> SubmittedRun:
    """Submit a run: write run, steps, idempotency key, event, audit event and wake-up in one
    transaction, committed before returning.

    With options.idempotencyKey, the same submit again returns the same run (S0 §4.1.1).

    Args:
        direct_call: the direct call that the run performs. Policy is evaluated for this call
            instead of the submit, and its approval covers the run's only step.
        message: the message of a task that the run answers.
        again_of: the run from whose inputs a person made these.

    Raises:
        Refused: As `validate_submission`; nothing was written but the audit of a refusal.
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
        is_slot_free=is_auto_mode and count_free_slots() > 0,
        is_message=message is not None,
    )
    check_webhook_option(principal, options.get("webhookId"))
    first = find_key_holder(submission)
    if first is None:  # a repeated submit needs no second authorization
        if direct_call is None and message is None:
            run = _new_run(submission, again_of=again_of)
            if _write_if_allowed(run, submission):
                return answer_submit(run, is_auto_mode=is_auto_mode)
        submission, approval = _admitted(submission, direct_call, message.key if message else "")
        run = _new_run(submission, again_of=again_of)
        first = _write_once(run, submission, approval, direct_call, message)
        if first is None:
            return answer_submit(run, is_auto_mode=is_auto_mode)
    return answer_key_holder(first, submission, is_auto_mode=is_auto_mode)


def _write_if_allowed(run: Run, submission: Submission) -> bool:
    """Write a run that policy allows by the cached rules, and test in the same statement that they
    still hold; False: nothing was written, and policy has to be evaluated.

    Only a submit that writes nothing else: a key, secret inputs or a new session.
    """
    if submission.key is not None or submission.secrets or submission.creates_session:
        return False
    allowed = authorize_cached(submission_request(submission, key=""))
    return allowed is not None and _write(run, submission, allowed.preconditions)


def _admitted(
    submission: Submission, direct_call: DirectCall | None, key: str
) -> tuple[Submission, Confirmation | None]:
    """Evaluate policy for a submit, or for the direct call that the run performs."""
    request = (
        direct_call.request
        if direct_call
        else submission_request(submission, key=submission.key or key)
    )
    approval = admit_call(request)
    if direct_call is None or approval is None:
        return submission, approval
    options = {**submission.options, APPROVED: approval.decision_id}
    return replace(submission, options=options), approval


def _write_once(
    run: Run,
    submission: Submission,
    approval: Confirmation | None,
    direct_call: DirectCall | None,
    message: PendingMessage | None,
) -> KeyHolder | None:
    """Claim the key, use the approval and write the run; or return the run that has the key."""
    if submission.key is None and approval is None and direct_call is None and message is None:
        _write(run, submission)
        return None
    with transaction.atomic():
        first = claim_key(submission, run.id) if submission.key is not None else None
        if first is None:
            use_approval(approval)
            if message is not None:
                message.attach(run)
            _write(run, submission)
            if direct_call is not None:
                direct_call.start_with(run.id)
    return first


def _new_run(
    submission: Submission, *, retry_of: str | None = None, again_of: str | None = None
) -> Run:
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
        subject=submission.subject,
        labels=submission.labels,
        session_id=session.id if session else new_id("sess_"),
        owns_session=session is None,
        shared=session is None and submission.template.shares_steps(submission.inputs),
        holds_secrets=bool(submission.secrets),
        status=RunStatus.QUEUED,
        total_steps=len(submission.plan),
        timeout_ms=submission.timeout_ms,
        retry_of=retry_of,
        again_of=again_of,
        last_seq=1,
        created_at=now,
        updated_at=now,
    )


def _write(run: Run, submission: Submission, preconditions: Sequence[Precondition] = ()) -> bool:
    """Write the run with its steps, session, secrets, event and audit event, in the caller's
    transaction or one of its own, and send its wake-up after the commit; False where a precondition
    does not hold: then nothing was written.
    """
    masker = input_masker(submission.inputs, submission.secrets.values())
    steps = [new_row(run, index, step, masker) for index, step in enumerate(submission.plan)]
    data = {"templateId": run.template_id, "totalSteps": run.total_steps, "mode": run.mode}
    origins = {"retryOf": run.retry_of, "againOf": run.again_of}
    data |= {name: run_id for name, run_id in origins.items() if run_id}
    details = {**data, "inputsDigest": submission.inputs_digests[0]}
    scope = run.tenant_id, run.workspace_id
    audit_event = AuditEvent(
        "run.submitted", submission.principal.id, "run", run.id, *scope, details
    )
    hit("before_submit")
    queued = NewEvent("run.queued", data)
    with ExitStack() as transactions:
        if submission.creates_session or submission.secrets:
            transactions.enter_context(transaction.atomic())
        if submission.creates_session and submission.session is not None:
            sessions.insert_session(submission.session, actor=run.principal_id, run_id=run.id)
        if not insert_run(run, steps, queued, audit_event, preconditions):
            return False
        if submission.secrets:
            sealed_row(run.id, submission.secrets, submission.plan).save(force_insert=True)
    if run.ready:
        wakeups.send_after_commit(run)
    return True


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


def retry_run(*, principal: Principal, run_id: str, include_past_ttl: bool = False) -> SubmittedRun:
    """Submit a failed or canceled run again as a new run that takes over the steps that succeeded.

    Commits before returning. Calling it twice returns the same new run (`retry_of` is unique).

    Args:
        include_past_ttl: also a run past its TTL; the admin shows runs longer than the API.

    Raises:
        RunNotFound: As `visible_run`.
        InvalidInput: The run held credentials, which were deleted.
        Conflict: The run has not ended, succeeded, or belongs to a task.
    """
    principal.require("runs:write")
    old = Run.objects.filter(seen_by(principal), id=run_id).first()
    if old is None or (is_past_ttl(old) and not include_past_ttl):
        raise RunNotFound(f"There is no run {run_id[:64]}.")
    check_retriable(old)
    options = {**old.requested_options, "mode": "async"}
    principal = acting_on(principal, old)
    submission = validate_submission(
        principal=principal,
        template_id=old.template_id,
        inputs=old.inputs,
        session_id=None if old.owns_session else old.session_id,
        options=options,
        is_slot_free=False,
    )
    run = _new_run(submission, retry_of=old.id)
    earlier = Run.objects.filter(retry_of=old.id).first()
    if earlier is None:
        approval = admit_call(submission_request(submission, key=f"retry of {old.id}"))
        with transaction.atomic():
            # Concurrent retries wait for the lock on the old row; the second finds the new run.
            list(Run.objects.select_for_update().filter(id=old.id))
            earlier = Run.objects.filter(retry_of=old.id).first()
            if earlier is None:
                use_approval(approval)
                _write(run, submission)
                copy_succeeded_steps(old, run)
    return answer_submit(run) if earlier is None else answer_submit(earlier, inputs_match=True)


def mark_async(run_id: str) -> None:
    """Set the run's mode to async: its caller stopped waiting for the result."""
    Run.objects.filter(id=run_id, status__in=ACTIVE).update(mode="async")
