"""Authorize a step's tool call: policy decision, required confirmation, and whether a person has
taken over the page.
"""

from __future__ import annotations

from dataclasses import replace

from decisions.authorization import authorize, confirmations
from decisions.authorization.authorize import Authorization, ToolCallRequest
from decisions.foundation.errors import PolicyDenied, Refused
from runners.models import ExecutionTarget
from runners.paired_browser.choice import is_paired_browser, state_of_browser
from runners.targets.cache import target_state
from runs.calls.browser_policy import allow_origin
from runs.calls.target import FoundTarget, PairedBrowserTarget
from runs.models import APPROVED, Run, Task


def authorize_call(run: Run, request: ToolCallRequest, found: FoundTarget) -> Authorization | None:
    """Return the authorization of a step's call on the target found for it; on the run's database
    thread. Marks an approval as used.

    None: a person has taken over the page of the run's task, and no call is made until the takeover
    ends.

    Raises:
        PolicyDenied: The call is denied.
        Refused: The runner or browser that it names cannot perform it.
    """
    if is_taken_over(run):
        return None
    _check_named_target(request, found)
    if isinstance(found, ExecutionTarget):
        request = replace(request, target_state=target_state(found))
    if isinstance(found, PairedBrowserTarget):
        request = replace(request, target_state=state_of_browser(found.client))
    approved = run.options.get(APPROVED)  # the approval of the direct call that the run makes
    authorization = authorize.authorize(request)
    is_new = authorization.decision == "confirm" and authorization.confirmation is None
    if is_new and approved is not None:
        # It was given before the run had a page: for the arguments, not for an element.
        digests = replace(request, basis="").subject_digests
        is_approved = confirmations.was_approved(
            approved, digests=digests, principal_id=request.principal_id
        )
        return replace(authorization, decision="allow") if is_approved else authorization
    if authorization.decision == "deny":
        raise authorize.deny(request, authorization)
    if authorization.decision == "allow" and authorization.confirmation is not None:
        # It may be used already, by a worker that was lost; the step's effect decides repetition.
        confirmations.mark_used(authorization.confirmation)
        allow_origin(run, request, authorization.confirmation)
    return authorization


def is_taken_over(run: Run) -> bool:
    """Return whether a person has taken over the page of the run's task."""
    return run.task_id is not None and Task.objects.is_taken_over(run.task_id)


def _check_named_target(request: ToolCallRequest, found: FoundTarget) -> None:
    """Raise why the runner or browser that a call names cannot perform it."""
    is_elsewhere = not request.is_builtin or is_paired_browser(request.target_id)
    if not is_elsewhere or request.target_id is None or not isinstance(found, Refused):
        return
    if isinstance(found, PolicyDenied):
        record_refusal(request, found)
    raise found


def record_refusal(request: ToolCallRequest, denied: PolicyDenied) -> None:
    """Record that a call was denied its target; commits."""
    authorize.record_denial(request, denied.message[:200], step=request.step_index)
