"""What comes before a deed: policy is asked, and where policy says so, a person.

A deed is one call of a tool: of a run's step, or made directly. Its approval is bound to tool,
target and the digest of the canonical arguments, and is good for that deed alone, once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from decisions.audit.record import AuditEvent, record
from decisions.authorization import confirmations
from decisions.authorization.policy import Verdict, evaluate
from decisions.errors import ConfirmationRequired, Conflict, PolicyDenied
from decisions.identity.principals import Principal
from decisions.infra.clock import to_ms
from decisions.models import Confirmation, ConfirmationStatus, Decision, DecisionKind, DecisionMode
from decisions.security.keys import macs
from decisions.security.logs import redact_value
from decisions.validation.storable import storable

DISPLAY_MAX_CHARS = 65_536  # bytes of a deed's arguments as people are shown them
ADMIN = "admin:"  # principals of people at the admin site
_SETTLED_NO = (ConfirmationStatus.REFUSED, ConfirmationStatus.EXPIRED, ConfirmationStatus.WITHDRAWN)


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """One call of a tool, as policy and people see it.

    Attributes:
        args: what the approval is bound to; secret inputs stand in it by name only.
        key: the caller's idempotency key, of a direct call.
        run_id, step_index, number: of a step: which call of which step this is.
        was_asked: people were asked about a call of this step before.
        shown: what people are shown instead of args, where those hold what is secret.
        is_own: the tool is one of ours, wherever it works.
    """

    principal_id: str
    tenant_id: str
    workspace_id: str
    tool: str
    args: Mapping[str, Any] = field(repr=False)
    target_id: str | None = None
    user_id: str | None = None
    key: str = ""
    run_id: str | None = None
    step_index: int | None = None
    number: int = 0
    may_have_confirmation: bool = False
    display_args: Mapping[str, Any] | None = field(default=None, repr=False)
    is_builtin: bool = False

    @property
    def digest(self) -> str:
        """The keyed digest of tool, target and arguments, whatever the order of their fields."""
        return self.digests[0]

    @property
    def digests(self) -> tuple[str, ...]:
        """That digest under each configured key, the newest first."""
        return _digests("deed", self.tool, self.target_id, self.args)

    @property
    def call_keys(self) -> tuple[str, ...]:
        """Which deed this is, under each configured key, the newest first: of a step its place in
        the run, else who calls what under which key.
        """
        if self.run_id is not None:
            return _digests("step", self.run_id, self.step_index, self.number)
        caller = self.principal_id, self.workspace_id, self.key
        return tuple(_digests("call", *caller, one)[age] for age, one in enumerate(self.digests))


@dataclass(frozen=True, slots=True)
class Authorization:
    """What becomes of a call.

    Attributes:
        decision: allow, deny, or confirm: a person has to be asked, or is being asked.
        standing: what a person is being asked, or said, about just this deed.
        replaces: the decision on this deed that says nothing of it any more.
    """

    verdict: Verdict
    decision: str
    confirmation: Confirmation | None = None
    supersedes: int | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a person is being asked already."""
        return (
            self.confirmation is not None and self.confirmation.status == ConfirmationStatus.WAITING
        )


def authorize(use: ToolCallRequest) -> Authorization:
    """Return what policy says of a call, and where it wants a person, what that person said.

    An approval of other arguments is no approval of these (it is stale).
    """
    verdict = evaluate(
        principal_id=use.principal_id,
        tenant_id=use.tenant_id,
        workspace_id=use.workspace_id,
        tool=use.tool,
        target_id=use.target_id,
        is_builtin=use.is_builtin,
    )
    if verdict.decision != "confirm" and not (
        use.may_have_confirmation and verdict.decision == "allow"
    ):
        return Authorization(verdict, verdict.decision)
    found = Confirmation.objects.select_related("decision")
    confirmation = found.filter(decision__deed_key__in=use.call_keys).first()
    if confirmation is None:
        return Authorization(verdict, verdict.decision)
    if confirmation.decision.subject_digest not in use.digests:
        return Authorization(verdict, verdict.decision, supersedes=confirmation.decision_id)
    confirmations.expire_if_due(confirmation)
    if verdict.decision == "allow":  # whatever became of the rule: a person's no is a no
        refused = confirmation.status == ConfirmationStatus.REFUSED
        return (
            Authorization(verdict, "deny", confirmation)
            if refused
            else Authorization(verdict, "allow")
        )
    if confirmation.status == ConfirmationStatus.CONFIRMED:
        return Authorization(verdict, "allow", confirmation)
    denied = confirmation.status in _SETTLED_NO
    return Authorization(verdict, "deny" if denied else "confirm", confirmation)


def request_confirmation(use: ToolCallRequest, ruling: Authorization) -> Confirmation:
    """Have the call wait for a person, in the caller's transaction.

    Raises:
        IntegrityError: Somebody asks about the same deed at the same moment.
    """
    now, verdict = datetime.now(UTC), ruling.verdict
    if ruling.supersedes is not None:
        Decision.objects.filter(pk=ruling.supersedes).update(deed_key=None)
    decision = Decision.objects.create(
        tenant_id=use.tenant_id,
        workspace_id=use.workspace_id,
        principal_id=use.principal_id,
        user_id=use.user_id,
        kind=DecisionKind.STEP if use.run_id else DecisionKind.TOOL,
        mode=DecisionMode.CONFIRM,
        rule=verdict.rule,
        reason=verdict.reason[:500],
        subject_digest=use.digest,
        tool=use.tool[:128],
        target_id=use.target_id,
        arguments=display_arguments(use.args if use.display_args is None else use.display_args),
        run_id=use.run_id,
        step_index=use.step_index,
        deed_key=use.call_keys[0],
        created_at=now,
    )
    return confirmations.open_confirmation(decision).confirmation


def admit_call(use: ToolCallRequest) -> Confirmation | None:
    """Let a direct call pass, or refuse it; where a person approved it, return the approval, which
    `begin` uses up. Commits what it writes.

    Raises:
        PolicyDenied: A rule or a person said no, or nobody answered in time.
        ConfirmationRequired: A person is asked from now on, or already.
    """
    ruling = _of_direct_call(use)
    if ruling.decision == "confirm" and use.principal_id.startswith(ADMIN):
        return None  # a person asks, with the right to confirm: there is nobody else to be asked
    if ruling.decision == "confirm" and not ruling.is_waiting:
        ruling = Authorization(ruling.verdict, "confirm", _ask_once(use, ruling))
    if ruling.decision == "deny":
        record_denial(use, ruling)
        refusal = denial(use, ruling)
        refusal.is_recorded = True
        raise refusal
    if ruling.decision == "confirm" and ruling.confirmation is not None:
        raise _required(use, ruling.confirmation)
    return ruling.confirmation


def use_approval(approval: Confirmation | None) -> None:
    """Use an approval up, in the transaction of what was approved.

    Raises:
        Conflict: The call was performed already: an approval is good once.
    """
    if approval is not None and not confirmations.mark_used(approval):
        raise Conflict(
            "This approved call was performed already; a new one needs a new key, and is asked"
            " about anew.",
            details={"decisionId": approval.decision_id},
        )


def _of_direct_call(use: ToolCallRequest) -> Authorization:
    ruling = authorize(use)
    if ruling.confirmation is not None and _has_lapsed(ruling.confirmation):
        return Authorization(ruling.verdict, "confirm", supersedes=ruling.confirmation.decision_id)
    if ruling.confirmation is None or use.key:
        return ruling
    # Without a key nothing tells the next call from this one: what was used up, or was answered no
    # and whose time is over, says nothing of it.
    over = ruling.confirmation.expires_at <= datetime.now(UTC)
    spent = ruling.confirmation.used_at is not None or (ruling.decision == "deny" and over)
    if not spent:
        return ruling
    return Authorization(ruling.verdict, "confirm", supersedes=ruling.confirmation.decision_id)


def _has_lapsed(approval: Confirmation) -> bool:
    """Tell whether an approval of a direct call waited for the call for too long to be good still;
    a run that waits goes on by itself.
    """
    if approval.status != ConfirmationStatus.CONFIRMED or approval.used_at is not None:
        return False
    good_for = timedelta(seconds=settings.CONFIRM_TTL_S)
    return approval.decided_at is not None and approval.decided_at + good_for < datetime.now(UTC)


def _ask_once(use: ToolCallRequest, ruling: Authorization) -> Confirmation:
    """Ask, or find out that somebody asked the same at the same moment."""
    try:
        with transaction.atomic():
            return request_confirmation(use, ruling)
    except IntegrityError:
        asked = Confirmation.objects.select_related("decision")
        return asked.get(decision__deed_key=use.call_keys[0])


def _required(use: ToolCallRequest, confirmation: Confirmation) -> ConfirmationRequired:
    return ConfirmationRequired(
        f"A person has to confirm {use.tool[:128]} first (decision {confirmation.decision_id}).",
        details={
            "decisionId": confirmation.decision_id,
            "expiresAt": to_ms(confirmation.expires_at),
            "rule": confirmation.decision.rule,
        },
    )


def denial(use: ToolCallRequest, ruling: Authorization) -> PolicyDenied:
    """Return the refusal of a denied call: what a rule forbids, a person refused, or nobody
    answered in time are told apart in details.
    """
    said = ruling.confirmation
    details: dict[str, Any] = {"tool": use.tool[:128], "rule": ruling.verdict.rule}
    if said is None:
        why = (ruling.verdict.reason or ruling.verdict.rule).rstrip(".")
        details["because"] = "rule"
        told_why = f"Policy does not allow {use.tool[:128]}: {why.rstrip('.')}."
        return PolicyDenied(told_why, details=details)
    details |= {"because": str(said.status), "decisionId": said.decision_id}
    told = {
        ConfirmationStatus.REFUSED: "A person refused",
        ConfirmationStatus.EXPIRED: "Nobody confirmed in time",
        ConfirmationStatus.WITHDRAWN: "The question was withdrawn about",
    }[ConfirmationStatus(said.status)]
    return PolicyDenied(f"{told} {use.tool[:128]} (decision {said.decision_id}).", details=details)


def record_denial(use: ToolCallRequest, ruling: Authorization) -> None:
    """Write the audit row of a denied call, in the caller's transaction."""
    told: dict[str, Any] = {"tool": use.tool[:128], "rule": ruling.verdict.rule}
    told["argsDigest"] = use.digest
    if use.target_id:
        told["targetId"] = use.target_id
    if ruling.confirmation is not None:
        told |= {
            "because": ruling.confirmation.status,
            "decisionId": ruling.confirmation.decision_id,
        }
    about = ("run", use.run_id) if use.run_id else ("tool", use.tool)
    record(
        AuditEvent("policy.denied", use.principal_id, *about, use.tenant_id, use.workspace_id, told)
    )


def tool_call_request(
    principal: Principal, tool: str, args: Mapping[str, Any], **more: Any
) -> ToolCallRequest:
    """Return a principal's direct call of a tool."""
    return ToolCallRequest(
        principal_id=principal.id,
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        user_id=principal.user_id,
        tool=tool,
        args=args,
        **more,
    )


def display_arguments(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as people are shown them: what looks like a secret is masked, and what is
    very long is cut, and says so.
    """
    display_args: dict[str, Any] = storable(redact_value(dict(args)))
    if len(json.dumps(display_args)) <= DISPLAY_MAX_CHARS:
        return display_args
    cut = {name: _cut(value) for name, value in list(display_args.items())[:50]}
    return cut | {"…": f"shortened; {len(json.dumps(display_args))} characters in all"}


def _cut(value: Any) -> Any:
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= 300 else text[:300] + "…"


def _digests(*parts: Any) -> tuple[str, ...]:
    """Return the digest of JSON values in canonical form under each key, the newest first."""
    raw = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str).encode()
    return macs("deed", hashlib.sha256(raw).digest())
