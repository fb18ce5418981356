"""Admission of direct calls: authorize the call and record its start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import transaction

from decisions.audit.record import AuditEvent
from decisions.authorization.authorize import (
    ToolCallRequest,
    admit_call,
    confirmed_basis,
    use_approval,
)
from decisions.authorization.policy import cached_policy
from decisions.foundation.infra.preconditions import Precondition
from runs.lifecycle.in_flight_calls import start_call


@dataclass(frozen=True, slots=True)
class StartedCall:
    """A direct call whose start is recorded; `confirmed_basis` as in `ToolContext`."""

    confirmed_basis: str | None


def start_direct_call(
    request: ToolCallRequest,
    call_id: str,
    started_event: AuditEvent,
    *,
    preconditions: Sequence[Precondition],
    write_first: Callable[[], None],
) -> StartedCall | None:
    """Authorize a direct call and record its start. Commits.

    None where the policy rules or what `preconditions` test changed meanwhile: then nothing was
    written, and the caller reads its target again.

    Args:
        write_first: writes what belongs to the start, in its transaction.

    Raises:
        PolicyDenied, ConfirmationRequired: As `authorize.admit_call`.
        Conflict: As `authorize.use_approval`.
    """
    # Read before the authorization, which reads the rules again if this process has older ones.
    policy = cached_policy(
        principal_id=request.principal_id,
        tenant_id=request.tenant_id,
        workspace_id=request.workspace_id,
    )
    approval = admit_call(request)
    with transaction.atomic():
        use_approval(approval)
        write_first()
        is_started = start_call(
            call_id, started_event, preconditions=[policy.precondition, *preconditions]
        )
        if not is_started:
            transaction.set_rollback(True)
    return StartedCall(confirmed_basis(approval)) if is_started else None
