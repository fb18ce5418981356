"""Create, change and retire policy rules; earlier versions are kept."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from decisions.audit.record import AuditEvent, record
from decisions.foundation.errors import Conflict, InvalidInput, NotFound
from decisions.foundation.validation.storable import storable_text
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


@dataclass(frozen=True, slots=True)
class RuleFields:
    """The fields of a PolicyRule that an operator sets.

    Attributes:
        tool: a tool's name, or `*` for every tool; required.
        reason: why the rule exists; required.
    """

    verdict: str
    scope: str = RuleScope.EVERYWHERE
    scope_id: str = ""
    tool: str = ""
    target_id: str = ""
    reason: str = ""


def create_rule(fields: RuleFields, *, actor: str) -> PolicyRule:
    """Create a rule, active from the next call on; audited. Commits.

    Raises:
        InvalidInput: The verdict or scope is unknown, scope_id names nothing that exists, or the
            tool or the reason is missing.
        Conflict: An active rule has the same scope, tool and target; details.rule names it.
    """
    owner = check_rule(fields)
    with transaction.atomic():
        rule = _write(fields, actor=actor)
        _record("policy_rule.created", actor, rule, owner)
        _renew_stamp()
    return rule


def change_rule(key: str, fields: RuleFields, *, actor: str) -> PolicyRule:
    """Write a new version of a rule, active from the next call on; audited. Commits.

    Raises:
        NotFound: No active rule has this key.
        InvalidInput, Conflict: As `create_rule`.
    """
    owner = check_rule(fields)
    with transaction.atomic():
        old = _retire(key, actor)
        rule = _write(fields, actor=actor, key=key, version=old.version + 1)
        _record("policy_rule.changed", actor, rule, owner, before=old.recorded_fields())
        _renew_stamp()
    return rule


def ensure_rule(fields: RuleFields, *, actor: str) -> None:
    """Create a rule, or change the verdict of the active rule with the same scope, tool and target.
    Commits. Calling it twice is safe.

    Raises:
        InvalidInput: As `create_rule`.
    """
    known = _same_conditions(fields).first()
    if known is None:
        create_rule(fields, actor=actor)
    elif known.verdict != fields.verdict:
        change_rule(known.key, fields, actor=actor)


def retire_rule(key: str, *, actor: str) -> None:
    """Retire a rule from the next call on; audited. Commits.

    Raises:
        NotFound: No active rule has this key.
    """
    with transaction.atomic():
        rule = _retire(key, actor)
        _record("policy_rule.retired", actor, rule, _owner(rule.scope, rule.scope_id) or ("", ""))
        _renew_stamp()


def list_rules_for_target(target_id: str, *, locks: bool = False) -> list[PolicyRule]:
    """Return the active rules that name a target.

    Args:
        locks: no rule is created, changed or retired by others until the transaction ends.
    """
    if locks:  # every change of a rule writes this row before it commits
        PolicyStamp.objects.select_for_update().filter(id=1).first()
    found = PolicyRule.objects.filter(target_id=target_id, retired_at__isnull=True)
    return list(found.order_by("key"))


def list_versions(key: str) -> list[PolicyRule]:
    """Return all versions of a rule, newest first."""
    return list(PolicyRule.objects.filter(key=key).order_by("-version"))


def check_rule(fields: RuleFields) -> tuple[str, str]:
    """Validate a rule's fields; return the ids of its tenant and workspace, "" for none.

    Raises:
        InvalidInput: As `create_rule`.
    """
    if fields.verdict not in RuleVerdict.values or fields.scope not in RuleScope.values:
        raise InvalidInput(
            f"verdict has to be one of {', '.join(RuleVerdict.values)}, and scope one of"
            f" {', '.join(RuleScope.values)}."
        )
    if not fields.tool.strip():
        raise InvalidInput("tool: name a tool, or * for every one.")
    if not fields.reason.strip():
        raise InvalidInput(
            "reason: say why the rule exists. Callers and the person who confirms read it."
        )
    owner = _owner(fields.scope, fields.scope_id)
    if owner is None:
        raise InvalidInput(f"scope_id: there is no {fields.scope} {fields.scope_id[:64]!r}.")
    return owner


def draft_rule(fields: RuleFields, *, key: str | None = None) -> PolicyRule:
    """Return the rule that these fields would make, unsaved; with a key, its next version.

    Raises:
        InvalidInput, Conflict: As `create_rule`.
        NotFound: No active rule has this key.
    """
    check_rule(fields)
    same = _same_conditions(fields).first()
    if same is not None and same.key != key:
        raise _conflict(same.key)
    texts = {name: storable_text(str(text)) for name, text in asdict(fields).items()}
    if key is None:
        return PolicyRule(**texts)
    return PolicyRule(**texts, key=key, version=active_rule(key).version + 1)


def active_rule(key: str) -> PolicyRule:
    """Return the rule in force with this key.

    Raises:
        NotFound: No active rule has this key.
    """
    rule = PolicyRule.objects.filter(key=key, retired_at__isnull=True).first()
    if rule is None:
        raise NotFound(f"There is no active rule {key[:64]}.")
    return rule


def scope_callers(scope: str, scope_id: str) -> frozenset[str]:
    """Return the scope ids that a caller of this scope is in, as `CallerPolicy.callers`; its own
    alone if scope_id names nothing that exists.
    """
    return frozenset({"", scope_id, *(_owner(scope, scope_id) or ())})


def _same_conditions(fields: RuleFields) -> QuerySet[PolicyRule]:
    return PolicyRule.objects.filter(
        scope=fields.scope,
        scope_id=fields.scope_id,
        tool=fields.tool,
        target_id=fields.target_id,
        retired_at__isnull=True,
    )


def _conflict(key: str) -> Conflict:
    return Conflict(
        f"The active rule {key} has the same scope, tool and target; change that one.",
        details={"rule": key},
    )


def _owner(scope: str, scope_id: str) -> tuple[str, str] | None:
    """Return the tenant id and workspace id of a scope, "" where it has none; None if scope_id
    names nothing that exists.
    """
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


def _write(fields: RuleFields, *, actor: str, **more: object) -> PolicyRule:
    texts = {name: storable_text(str(text)) for name, text in asdict(fields).items()}
    rule = PolicyRule(**texts, **more, created_by=actor, created_at=datetime.now(UTC))
    try:
        with transaction.atomic():
            rule.save(force_insert=True)
    except IntegrityError:
        active = _same_conditions(fields).first()
        raise _conflict(active.key if active else "") from None
    return rule


def _retire(key: str, actor: str) -> PolicyRule:
    rule = active_rule(key)
    # Compare and set: of two concurrent changes, the second one fails.
    active = PolicyRule.objects.filter(key=key, version=rule.version, retired_at__isnull=True)
    if not active.update(retired_at=datetime.now(UTC), retired_by=actor):
        raise NotFound(f"There is no active rule {key[:64]}.")
    return rule


def _renew_stamp() -> None:
    """Invalidate the cached rules of every process. Last in the transaction: the lock on the row
    orders the commits.
    """
    PolicyStamp.objects.update_or_create(id=1, defaults={"stamp": secrets.token_hex(16)})


def _record(
    action: str, actor: str, rule: PolicyRule, owner: tuple[str, str], **more: object
) -> None:
    fields = {**rule.recorded_fields(), **more}
    record(AuditEvent(action, actor, "policy_rule", rule.key, *owner, fields))
