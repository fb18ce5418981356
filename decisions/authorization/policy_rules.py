"""Making, changing and retiring rules of policy; what was in force before stays to be read."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from django.db import IntegrityError, transaction

from decisions.audit.record import AuditEvent, record
from decisions.errors import Conflict, InvalidInput, NotFound
from decisions.identity.principals import LOCAL, ensure_workspace
from decisions.models import (
    PolicyRule,
    PolicyStamp,
    RuleScope,
    RuleVerdict,
    Tenant,
    Token,
    Workspace,
)
from decisions.validation.storable import storable_text


@dataclass(frozen=True, slots=True)
class RuleFields:
    """What a rule says; the attributes of PolicyRule that a person chooses."""

    verdict: str
    scope: str = RuleScope.EVERYWHERE
    scope_id: str = ""
    tool: str = "*"
    target_id: str = ""
    reason: str = ""


def create_rule(says: RuleFields, *, actor: str) -> PolicyRule:
    """Put a rule in force, audited; it holds from the next call on. Commits.

    Raises:
        InvalidInput: An unknown verdict or scope, or a scope that names nobody.
        Conflict: A rule about just the same is in force; details.rule names it.
    """
    place = _check(says)
    with transaction.atomic():
        rule = _write(says, actor=actor)
        _record("policy_rule.created", actor, rule, place)
        _stamp()
    return rule


def change_rule(key: str, says: RuleFields, *, actor: str) -> PolicyRule:
    """Have a rule say something else from the next call on, audited; commits. What it said before
    stays as an earlier version.

    Raises:
        NotFound: No rule in force has this key; somebody may have retired it meanwhile.
        InvalidInput, Conflict: As `make_rule`.
    """
    place = _check(says)
    with transaction.atomic():
        old = _retire(key, actor)
        rule = _write(says, actor=actor, key=key, version=old.version + 1)
        _record("policy_rule.changed", actor, rule, place, before=_told(old))
        _stamp()
    return rule


def ensure_rule(says: RuleFields, *, actor: str) -> PolicyRule:
    """Put a rule in force, or have the one about just the same say so; one that says so already
    stays as it is. Commits.

    Raises:
        InvalidInput: As `make_rule`.
    """
    known = PolicyRule.objects.filter(
        scope=says.scope,
        scope_id=says.scope_id,
        tool=says.tool,
        target_id=says.target_id,
        retired_at__isnull=True,
    ).first()
    if known is None:
        return create_rule(says, actor=actor)
    return known if known.verdict == says.verdict else change_rule(known.key, says, actor=actor)


def retire_rule(key: str, *, actor: str) -> PolicyRule:
    """Take a rule out of force from the next call on, audited. Commits.

    Raises:
        NotFound: No rule in force has this key.
    """
    with transaction.atomic():
        rule = _retire(key, actor)
        _record("policy_rule.retired", actor, rule, _place(rule.scope, rule.scope_id) or ("", ""))
        _stamp()
    return rule


def list_rules_for_target(target_id: str) -> list[str]:
    """Return the keys of the rules in force that name a target."""
    found = PolicyRule.objects.filter(target_id=target_id, retired_at__isnull=True)
    return list(found.order_by("key").values_list("key", flat=True))


def list_versions(key: str) -> list[PolicyRule]:
    """Return what a rule said through time, the newest first."""
    return list(PolicyRule.objects.filter(key=key).order_by("-version"))


def _check(says: RuleFields) -> tuple[str, str]:
    """Refuse what no rule can say; return the tenant and the workspace that it is about."""
    if says.verdict not in RuleVerdict.values or says.scope not in RuleScope.values:
        raise InvalidInput("A rule says allow, deny or confirm, of a scope that exists.")
    if not says.tool.strip():
        raise InvalidInput("tool: name a tool, or * for every one.")
    place = _place(says.scope, says.scope_id)
    if place is None:
        raise InvalidInput(f"scope_id: there is no {says.scope} {says.scope_id[:64]!r}.")
    return place


def _place(scope: str, scope_id: str) -> tuple[str, str] | None:
    """Return tenant and workspace of a scope, empty where it has none; None: it names nobody."""
    if scope == RuleScope.EVERYWHERE:
        return ("", "") if not scope_id else None
    if scope == RuleScope.TENANT:
        return (scope_id, "") if Tenant.objects.filter(id=scope_id).exists() else None
    if scope == RuleScope.WORKSPACE:
        workspace = Workspace.objects.filter(id=scope_id).first()
    elif scope_id == LOCAL:
        workspace = ensure_workspace()
    else:
        token = Token.objects.select_related("workspace")
        found = token.filter(id=scope_id.removeprefix("token:")).first()
        workspace = found.workspace if found and scope_id.startswith("token:") else None
    return None if workspace is None else (workspace.tenant_id, workspace.id)


def _write(says: RuleFields, *, actor: str, **more: object) -> PolicyRule:
    told = {name: storable_text(str(text)) for name, text in asdict(says).items()}
    rule = PolicyRule(**told, **more, created_by=actor, created_at=datetime.now(UTC))
    try:
        with transaction.atomic():
            rule.save(force_insert=True)
    except IntegrityError:
        in_force = PolicyRule.objects.filter(
            scope=says.scope,
            scope_id=says.scope_id,
            tool=says.tool,
            target_id=says.target_id,
            retired_at__isnull=True,
        ).first()
        known = in_force.key if in_force else ""
        raise Conflict(
            f"A rule about just this is in force: {known}. Change that one.",
            details={"rule": known},
        ) from None
    return rule


def _retire(key: str, actor: str) -> PolicyRule:
    rule = PolicyRule.objects.filter(key=key, retired_at__isnull=True).first()
    # By compare-and-set: of two changes at once the second finds what the first made of it.
    in_force = PolicyRule.objects.filter(
        key=key, version=rule.version if rule else 0, retired_at__isnull=True
    )
    if rule is None or not in_force.update(retired_at=datetime.now(UTC), retired_by=actor):
        raise NotFound(f"No rule {key[:64]} is in force any more.")
    return rule


def _stamp() -> None:
    """Tell every process that the rules are others; last, so that the row's lock orders the
    commits.
    """
    PolicyStamp.objects.update_or_create(id=1, defaults={"stamp": secrets.token_hex(16)})


def _told(rule: PolicyRule) -> dict[str, object]:
    return {
        "version": rule.version,
        "verdict": rule.verdict,
        "scope": rule.scope,
        "scopeId": rule.scope_id,
        "tool": rule.tool,
        "targetId": rule.target_id,
        "reason": rule.reason,
    }


def _record(
    action: str, actor: str, rule: PolicyRule, place: tuple[str, str], **more: object
) -> None:
    record(AuditEvent(action, actor, "policy_rule", rule.key, *place, {**_told(rule), **more}))
