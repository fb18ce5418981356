"""Submit a run. The steps follow each other: template, inputs, secrets, subject and limits
(`prepare_run`), then policy and the write, which commits before the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from django.db import IntegrityError, transaction
from django.db.models import Model

from decisions.audit.record import AuditEvent, entry_for
from decisions.authorization.authorize import admit_call, authorize_cached, use_approval
from decisions.foundation.infra.preconditions import Precondition
from decisions.foundation.security.masking import input_masker
from decisions.identity.principals import Principal
from decisions.models import Confirmation
from runs.failpoints import hit
from runs.lifecycle.changes import NewEvent
from runs.lifecycle.step_rows import new_row
from runs.lifecycle.transition import insert_run
from runs.models import ACTIVE, APPROVED, Run, RunKey
from runs.queue import wakeups
from runs.sessions.services import created_event
from runs.submission.idempotency import KeyHolder, claim_key, find_key_holder, if_free, key_row
from runs.submission.prepare import NewRun, prepare_run
from runs.submission.secret_inputs import sealed_row
from runs.submission.submitted_run import SubmittedRun
from runs.webhooks.services import check_webhook_option

if TYPE_CHECKING:
    from runs.calls.record import DirectCall


class PendingMessage(Protocol):
    """A message of a task for which a run is submitted (`runs.conversations.messages`)."""

    @property
    def key(self) -> str:
        """The message's idempotency key; empty without one."""

    def attach(self, run: Run) -> None:
        """Assign the unsaved run to its task, in the transaction that writes the run.

        Sets `run.ready` to false if earlier messages of the task are still being answered.
        """


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
    run_id: str | None = None,
) -> SubmittedRun:
    """Submit a run: write run, steps, idempotency key, event, audit event and wake-up in one
    transaction, committed before returning.

    With options.idempotencyKey, the same submit again returns the same run (S0 §4.1.1).

    Args:
        direct_call: the direct call that the run performs. Policy is evaluated for this call
            instead of the submit, and its approval covers the run's only step.
        message: the message of a task that the run answers.
        again_of: the run from whose inputs a person made these.
        run_id: the id of the run, from `new_id("run_")`, if the caller follows it already.

    Raises:
        Refused: As `prepare_run`; nothing was written but the audit of a refusal.
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
    """
    options = options or {}
    is_auto_mode = options.get("mode", "auto") == "auto"
    new = prepare_run(
        principal=principal,
        template_id=template_id,
        inputs=inputs,
        session_id=session_id,
        options=options,
        is_message=message is not None,
    )
    new.run.again_of = again_of
    new.run.id = run_id or new.run.id
    if "webhookId" in options:
        check_webhook_option(principal, options["webhookId"])
    if direct_call is None and message is None and _write_if_allowed(new):
        return SubmittedRun(new.run, is_auto_mode)
    holder = find_key_holder(new)
    if holder is None:  # a repeated submit needs no second authorization
        approval = _authorize(new, direct_call, message.key if message else "")
        holder = _write_authorized(new, approval, direct_call, message)
    return (
        SubmittedRun(new.run, is_auto_mode) if holder is None else holder.answer(new, is_auto_mode)
    )


def _write_if_allowed(new: NewRun) -> bool:
    """Write a run that policy allows by the cached rules, and test in the same statement that they
    still hold and that no run has its key; False: nothing was written.
    """
    allowed = authorize_cached(new.as_call(key=new.key or ""))
    if allowed is None:
        return False
    if new.key is None:
        return write_run(new, preconditions=allowed.preconditions)
    try:
        return write_run(
            new, key=key_row(new), preconditions=[*allowed.preconditions, if_free(new)]
        )
    except IntegrityError:
        return False  # a submit at the same time has the key


def _authorize(
    new: NewRun, direct_call: DirectCall | None, message_key: str
) -> Confirmation | None:
    """Evaluate policy for a submit, or for the direct call that the run performs; return the
    approval, which is to be used with the write.
    """
    if direct_call is None:
        return admit_call(new.as_call(key=new.key or message_key))
    approval = admit_call(direct_call.request)
    if approval is not None:
        new.run.options[APPROVED] = approval.decision_id
    return approval


def _write_authorized(
    new: NewRun,
    approval: Confirmation | None,
    direct_call: DirectCall | None,
    message: PendingMessage | None,
) -> KeyHolder | None:
    """Claim the key, use the approval and write the run; or return the run that has the key."""
    with transaction.atomic():
        holder = claim_key(new) if new.key is not None else None
        if holder is None:
            use_approval(approval)
            if message is not None:
                message.attach(new.run)
            write_run(new)
            if direct_call is not None:
                direct_call.start_with(new.run.id)
    return holder


def write_run(
    new: NewRun, *, key: RunKey | None = None, preconditions: Sequence[Precondition] = ()
) -> bool:
    """Write the run with its steps, session, secrets, key, event and audit event, in the caller's
    transaction or one of its own, and send its wake-up after the commit; False where a precondition
    does not hold: then nothing was written.
    """
    run = new.run
    masker = input_masker(run.inputs, new.secrets.values())
    steps = [new_row(run, index, step, masker) for index, step in enumerate(new.plan)]
    data = {"templateId": run.template_id, "totalSteps": run.total_steps, "mode": run.mode}
    origins = {"retryOf": run.retry_of, "againOf": run.again_of}
    data |= {name: run_id for name, run_id in origins.items() if run_id}
    details = {**data, "inputsDigest": new.inputs_digests[0]}
    scope = run.tenant_id, run.workspace_id
    submitted = AuditEvent("run.submitted", new.principal.id, "run", run.id, *scope, details)
    others: list[Model] = [entry_for(submitted)]
    if key is not None:
        others.append(key)
    if (session := new.created_session) is not None:
        created = created_event(session, actor=run.principal_id, run_id=run.id)
        others += [session, entry_for(created)]
    if new.secrets:
        others.append(sealed_row(run.id, new.secrets, new.plan))
    hit("before_submit")
    queued = NewEvent("run.queued", data)
    if not insert_run(run, steps, queued, others, preconditions):
        return False
    if run.ready:
        wakeups.send_after_commit(run)
    return True


def mark_async(run_id: str) -> None:
    """Set the run's mode to async: its caller stopped waiting for the result."""
    Run.objects.filter(id=run_id, status__in=ACTIVE).update(mode="async")
