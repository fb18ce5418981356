"""Authorize a tool call: evaluate policy; where it says confirm, require a person's confirmation.

A tool call is part of a run's step, or made directly. Its confirmation is bound to the tool, the
target as it was then, and the canonical arguments, and permits that one call, once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from decisions.audit.record import AuditEvent, record
from decisions.authorization import confirmations
from decisions.authorization.genuine_answers import is_confirmed
from decisions.authorization.policy import CallerPolicy, Verdict, cached_policy, current_policy
from decisions.authorization.sealed_arguments import (
    CannotBeShown,
    check_showable,
    seal_arguments,
    stored_state,
)
from decisions.foundation.errors import ConfirmationRequired, Conflict, PolicyDenied
from decisions.foundation.infra.clock import to_ms
from decisions.foundation.infra.preconditions import Precondition
from decisions.foundation.security.keys import macs
from decisions.foundation.security.logs import redact_value
from decisions.foundation.validation.storable import storable
from decisions.identity.principals import ADMIN, Principal, TrustLevel
from decisions.models import Confirmation, ConfirmationStatus, Decision, DecisionKind, DecisionMode
from decisions.signals import call_information

DISPLAY_MAX_CHARS = 65_536  # JSON characters of the arguments in lists and records
_CHANGED = "What it works on has changed since an earlier confirmation was requested."
_UNREADABLE = "What an earlier confirmation was requested for cannot be read."
_NOT_GENUINE = (
    "The confirmation of decision {} does not count: no valid answer of a person is stored."
)
_DENIED = {
    ConfirmationStatus.REFUSED: "A person refused {}",
    ConfirmationStatus.EXPIRED: "No person confirmed {} in time",
    ConfirmationStatus.WITHDRAWN: "The confirmation of {} was withdrawn",
}


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """One tool call that policy and people decide on.

    Attributes:
        args: what the confirmation is bound to; secret inputs are in it by name only.
        trust: of the caller: who confirms needs as much.
        key: the caller's idempotency key, of a direct call.
        run_id, step_index, number: of a step's call: its position in the run.
        may_have_confirmation: a confirmation of a call of this step was requested before.
        display_args: what records and events have instead of args, where those have secrets.
        shown_args: what the confirming person sees instead of args: secrets stand in it by name.
        is_builtin: the tool is built in, whatever target it works on.
        target_state: the target's id and, after a blank, what changes with every change of it;
            empty where there is no target.
        origin: of the page in a paired browser that it changes; a confirmation is for it.
        basis: the element of a page that it uses and the facts about it, as canonical JSON; a
            confirmation is for it. Never stored: addresses are whole in it.
        covers: the other tools that it does the same as; rules on them restrict it.
        is_lost: an earlier worker was lost during it: it is not made again, only its result is
            collected, so that its element cannot be compared any more.
        default: the policy decision if no rule matches; None: by tool and target.
    """

    principal_id: str
    tenant_id: str
    workspace_id: str
    tool: str
    args: Mapping[str, Any] = field(repr=False)
    trust: TrustLevel = "local"
    target_id: str | None = None
    user_id: str | None = None
    key: str = ""
    run_id: str | None = None
    step_index: int | None = None
    number: int = 0
    may_have_confirmation: bool = False
    display_args: Mapping[str, Any] | None = field(default=None, repr=False)
    shown_args: Mapping[str, Any] | None = field(default=None, repr=False)
    is_builtin: bool = False
    target_state: str = ""
    origin: str = ""
    basis: str = field(default="", repr=False)
    covers: frozenset[str] = frozenset()
    is_lost: bool = False
    default: Verdict | None = None

    @property
    def digest(self) -> str:
        """The keyed digest of tool, target and canonical arguments."""
        return self.digests[0]

    @property
    def digests(self) -> tuple[str, ...]:
        """The digest under each configured key, newest first."""
        return _digests("deed", self.tool, self.target_id, self.args)

    @property
    def subject_digests(self) -> tuple[str, ...]:
        """The digest that a confirmation is bound to, under each configured key, newest first: of
        tool, target, canonical arguments, the target's state, the page's origin and the element.
        """
        bound_to = [self.target_state, self.origin, self.basis]
        while bound_to and not bound_to[-1]:
            bound_to.pop()
        if not bound_to:
            return self.digests
        return _digests("subject", self.tool, self.target_id, self.args, *bound_to)

    @property
    def call_keys(self) -> tuple[str, ...]:
        """The identity of this call under each configured key, newest first: of a step's call its
        position in the run, else caller, workspace, idempotency key and digest.
        """
        if self.run_id is not None:
            return _digests("step", self.run_id, self.step_index, self.number)
        caller = self.principal_id, self.workspace_id, self.key
        return tuple(_digests("call", *caller, one)[age] for age, one in enumerate(self.digests))


@dataclass(frozen=True, slots=True)
class Authorization:
    """The outcome of authorizing a tool call.

    Attributes:
        decision: allow, deny, or confirm: a person's confirmation is required and still missing.
        hidden: why a person cannot see the arguments whole; the call is denied then.
        target_state: the state of the target for which the call was authorized.
        confirmation: the confirmation of exactly this call; with the decision confirm, one that
            waits, or None: it was not requested yet.
        supersedes: the id of an earlier decision on this call that no longer applies to it.
        asks_again: why that decision no longer applies, for the caller; empty if its arguments or
            its target differ.
        renewals: how often a confirmation of this call was requested anew because the element of
            the page that it uses had changed.
        forged: the earlier confirmation, if it is confirmed by its status alone.
        preconditions: that the policy rules have not changed since; the statement that starts the
            call tests it.
    """

    verdict: Verdict
    decision: str
    confirmation: Confirmation | None = None
    supersedes: int | None = None
    preconditions: Sequence[Precondition] = ()
    hidden: str = ""
    asks_again: str = ""
    renewals: int = 0
    forged: Confirmation | None = None
    target_state: str = ""


def authorize_cached(call: ToolCallRequest) -> Authorization | None:
    """Return the authorization of a call that the rules which this process cached allow, without a
    query; None for any other decision, or where a person may have been asked about the call.
    """
    policy = cached_policy(call)
    verdict = _verdict(policy, call)
    if verdict.decision != "allow" or call.may_have_confirmation:
        return None
    return Authorization(verdict, "allow", preconditions=[policy.precondition])


def authorize(call: ToolCallRequest) -> Authorization:
    """Return the policy decision on a call and, where policy says confirm, its confirmation.

    A confirmation of other arguments, or of the target before a change, does not count: it is
    superseded.
    """
    policy = current_policy(call)
    authorization = replace(
        _with_confirmation(call, _verdict(policy, call)),
        preconditions=[policy.precondition],
        target_state=call.target_state,
    )
    return _denied_if_hidden(call, authorization)


def _verdict(policy: CallerPolicy, call: ToolCallRequest) -> Verdict:
    return policy.evaluate(
        call.tool,
        call.target_id,
        is_builtin=call.is_builtin,
        default=call.default,
        covers=call.covers,
    )


def _denied_if_hidden(call: ToolCallRequest, authorization: Authorization) -> Authorization:
    """Deny a call that needs a confirmation if no person could see what it does."""
    if authorization.decision != "confirm" or _needs_no_second_person(call):
        return authorization
    try:
        check_showable(call.tool, call.args)
    except CannotBeShown as hidden:
        return replace(authorization, decision="deny", confirmation=None, hidden=hidden.reason)
    return authorization


def _needs_no_second_person(call: ToolCallRequest) -> bool:
    """Return whether the caller of a direct call is a person who may confirm."""
    return call.run_id is None and call.principal_id.startswith(ADMIN)


def _with_confirmation(call: ToolCallRequest, verdict: Verdict) -> Authorization:
    if verdict.decision != "confirm" and not (
        call.may_have_confirmation and verdict.decision == "allow"
    ):
        return Authorization(verdict, verdict.decision)
    found = Confirmation.objects.select_related("decision")
    confirmation = found.filter(decision__call_key__in=call.call_keys).first()
    if confirmation is None:
        return Authorization(verdict, verdict.decision)
    if confirmation.decision.subject_digest not in call.subject_digests and not call.is_lost:
        renewals = (
            int(stored_state(confirmation.decision).get("renewals", 0)) + 1 if call.basis else 0
        )
        older = confirmation.decision_id
        return Authorization(verdict, verdict.decision, supersedes=older, renewals=renewals)
    confirmations.expire_if_due(confirmation)
    if verdict.decision == "confirm" and _is_forged(confirmation, call):
        return Authorization(
            verdict,
            "confirm",
            supersedes=confirmation.decision_id,
            asks_again=_NOT_GENUINE.format(confirmation.decision_id),
            forged=confirmation,
        )
    return _with_found(confirmation, verdict)


def _is_forged(confirmation: Confirmation, call: ToolCallRequest) -> bool:
    """Return whether it says that a call was confirmed, and no person confirmed it to this caller.
    An answer that an older version recorded has no MAC and counts as forged.
    """
    if confirmation.status != ConfirmationStatus.CONFIRMED:
        return False
    decision = confirmation.decision
    is_callers = (decision.tenant_id, decision.workspace_id, decision.principal_id) == (
        call.tenant_id,
        call.workspace_id,
        call.principal_id,
    )
    return not (is_callers and is_confirmed(confirmation))


def _with_found(confirmation: Confirmation, verdict: Verdict) -> Authorization:
    """Return the authorization of the call that a confirmation is for."""
    if verdict.decision == "confirm" and (reason := _why_outdated(confirmation)):
        older = confirmation.decision_id
        return Authorization(verdict, "confirm", supersedes=older, asks_again=reason)
    if verdict.decision == "allow":  # the rule was relaxed; a person's refusal still holds
        refused = confirmation if confirmation.status == ConfirmationStatus.REFUSED else None
        return Authorization(verdict, "deny" if refused else "allow", refused)
    if confirmation.status == ConfirmationStatus.CONFIRMED:
        return Authorization(verdict, "allow", confirmation)
    denied = confirmation.status in _DENIED
    return Authorization(verdict, "deny" if denied else "confirm", confirmation)


def _why_outdated(confirmation: Confirmation) -> str:
    """Return why the call needs a new confirmation: what it works on has changed since this one was
    requested, or what that was cannot be read. Empty: it needs none.
    """
    if confirmation.status in _DENIED or confirmation.used_at is not None:
        return ""
    basis = call_information().basis_of(confirmation.decision)
    stored = stored_state(confirmation.decision).get("basis")
    if basis is None or basis == stored:
        return ""
    return _UNREADABLE if stored is None else _CHANGED


def confirmed_basis(confirmation: Confirmation | None) -> str | None:
    """Return the digest of what a confirmed call may work on (`ToolContext.confirmed_basis`)."""
    return None if confirmation is None else stored_state(confirmation.decision).get("basis") or ""


def request_confirmation(call: ToolCallRequest, authorization: Authorization) -> Confirmation:
    """Open a confirmation for the call, in the caller's transaction.

    Raises:
        IntegrityError: A concurrent request opened one for the same call.
    """
    now, verdict = datetime.now(UTC), authorization.verdict
    if authorization.forged is not None:
        confirmations.record_forged(authorization.forged, call.principal_id)
    if authorization.supersedes is not None:
        confirmations.supersede(authorization.supersedes, by=call.principal_id)
    decision = Decision(
        tenant_id=call.tenant_id,
        workspace_id=call.workspace_id,
        principal_id=call.principal_id,
        trust=call.trust,
        user_id=call.user_id,
        kind=DecisionKind.STEP if call.run_id else DecisionKind.TOOL,
        mode=DecisionMode.CONFIRM,
        rule=verdict.rule,
        reason=verdict.reason[:500],
        subject_digest=call.subject_digests[0],
        tool=call.tool[:128],
        target_id=call.target_id,
        arguments=display_arguments(call.args if call.display_args is None else call.display_args),
        run_id=call.run_id,
        step_index=call.step_index,
        call_key=call.call_keys[0],
        created_at=now,
    )
    shown = call.args if call.shown_args is None else call.shown_args
    decision.sealed_arguments = seal_arguments(decision, shown)  # the basis is computed from them
    decision.sealed_arguments = seal_arguments(
        decision,
        shown,
        call_information().basis_of(decision),
        target_state=call.target_state,
        renewals=authorization.renewals,
    )
    decision.save(force_insert=True)
    return confirmations.open_confirmation(decision, args_digest=call.digest).confirmation


def admit_call(call: ToolCallRequest) -> Confirmation | None:
    """Admit a direct call: return None, or the person's approval, which `use_approval` consumes.

    Commits the confirmation or the audit row that it writes.

    Raises:
        PolicyDenied: A rule denies the call, a person refused it, or the confirmation expired.
        ConfirmationRequired: The call waits for a person's confirmation.
    """
    authorization = _authorize_direct(call)
    if authorization.decision == "deny":
        refusal = deny(call, authorization)
        refusal.is_recorded = True
        raise refusal
    if authorization.decision == "allow":
        return authorization.confirmation
    if _needs_no_second_person(call):
        return None
    waiting = authorization.confirmation or _request_once(call, authorization)
    raise _required(call, waiting, authorization.asks_again)


def use_approval(approval: Confirmation | None) -> None:
    """Mark an approval as used, in the transaction of the approved call; None does nothing.

    Raises:
        Conflict: The approval was used before.
    """
    if approval is not None and not confirmations.mark_used(approval):
        raise Conflict(
            "This approved call was carried out already; a new call needs a new key and a new"
            " confirmation.",
            details={"decisionId": approval.decision_id},
        )


def _authorize_direct(call: ToolCallRequest) -> Authorization:
    authorization = authorize(call)
    approval = authorization.confirmation
    if approval is None or not (_has_lapsed(approval) or _is_spent(call, authorization, approval)):
        return authorization
    return Authorization(authorization.verdict, "confirm", supersedes=approval.decision_id)


def _is_spent(
    call: ToolCallRequest, authorization: Authorization, confirmation: Confirmation
) -> bool:
    """Return whether a used approval, or a refusal after its expiry time, does not apply to a new
    call: without a key, a repeated call cannot be distinguished from a new one.
    """
    expired = confirmation.expires_at <= datetime.now(UTC)
    is_over = confirmation.used_at is not None or (authorization.decision == "deny" and expired)
    return not call.key and is_over


def _has_lapsed(approval: Confirmation) -> bool:
    """Return whether the caller did not repeat an approved direct call within CONFIRM_TTL_S.

    A suspended run needs no such limit: it resumes by itself.
    """
    if approval.status != ConfirmationStatus.CONFIRMED or approval.used_at is not None:
        return False
    valid_for = timedelta(seconds=settings.CONFIRM_TTL_S)
    return approval.decided_at is not None and approval.decided_at + valid_for < datetime.now(UTC)


def _request_once(call: ToolCallRequest, authorization: Authorization) -> Confirmation:
    """Open a confirmation, or return the one that a concurrent request opened."""
    try:
        with transaction.atomic():
            return request_confirmation(call, authorization)
    except IntegrityError:
        rows = Confirmation.objects.select_related("decision")
        return rows.get(decision__call_key=call.call_keys[0])


def _required(
    call: ToolCallRequest, confirmation: Confirmation, asks_again: str
) -> ConfirmationRequired:
    return ConfirmationRequired(
        f"A person has to confirm {call.tool[:128]} first (decision {confirmation.decision_id})."
        f" {asks_again}".rstrip(),
        details={
            "decisionId": confirmation.decision_id,
            "expiresAt": to_ms(confirmation.expires_at),
            "rule": confirmation.decision.rule,
        },
    )


def deny(call: ToolCallRequest, authorization: Authorization) -> PolicyDenied:
    """Record the audit event of a denied call, in the caller's transaction, and return the call's
    error; details.because is `rule`, `hidden` (no person could see the arguments whole) or the
    confirmation's status.
    """
    tool, verdict, hidden = call.tool[:128], authorization.verdict, authorization.hidden
    confirmation = authorization.confirmation
    about: dict[str, Any] = {}
    if hidden:
        about["because"] = "hidden"
        message = f"A person has to confirm {tool} and could not see it whole. {hidden}"
    elif confirmation is not None:
        status = ConfirmationStatus(confirmation.status)
        about["because"] = str(status)
        about["decisionId"] = confirmation.decision_id
        message = f"{_DENIED[status].format(tool)} (decision {confirmation.decision_id})."
    else:
        reason = (verdict.reason or verdict.rule).rstrip(".")
        message = f"Policy does not allow {tool}: {reason}."
    record_denial(call, verdict.rule, **about, **({"reason": hidden} if hidden else {}))
    details = {"tool": tool, "rule": verdict.rule, "because": "rule", **about}
    return PolicyDenied(message, details=details)


def record_denial(call: ToolCallRequest, rule: str, **more: Any) -> None:
    """Record the audit event of a denied call, in the caller's transaction."""
    details: dict[str, Any] = {"tool": call.tool[:128], "rule": rule, "argsDigest": call.digest}
    if call.target_id:
        details["targetId"] = call.target_id
    about = ("run", call.run_id) if call.run_id else ("tool", call.tool)
    scope = call.tenant_id, call.workspace_id
    record(AuditEvent("policy.denied", call.principal_id, *about, *scope, details | more))


def tool_call_request(
    principal: Principal, tool: str, args: Mapping[str, Any], **more: Any
) -> ToolCallRequest:
    """Return the request of a principal's direct tool call; `more` are further attributes."""
    return ToolCallRequest(
        principal_id=principal.id,
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        user_id=principal.user_id,
        trust=principal.trust,
        tool=tool,
        args=args,
        **more,
    )


def display_arguments(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for lists, events and records: what looks like a secret masked, very long
    ones cut with a note. Who decides sees the exact ones (`decision_pages`).
    """
    redacted: dict[str, Any] = storable(redact_value(dict(args)))
    if len(json.dumps(redacted)) <= DISPLAY_MAX_CHARS:
        return redacted
    cut = {name: _cut(value) for name, value in list(redacted.items())[:50]}
    return cut | {"…": f"shortened; {len(json.dumps(redacted))} characters in all"}


def _cut(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= 300 else text[:300] + "…"


def _digests(*parts: Any) -> tuple[str, ...]:
    """Return the digest of canonical JSON under each configured key, newest first."""
    raw = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str).encode()
    return macs("deed", hashlib.sha256(raw).digest())  # the purpose is fixed by stored digests
