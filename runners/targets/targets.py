"""Execution targets: create, change, delete, and choose the target of a call (S3 §2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from decisions.audit.record import AuditEvent, record
from decisions.authorization.policy_rules import (
    RuleFields,
    ensure_rule,
    list_rules_for_target,
    retire_rule,
)
from decisions.foundation.errors import Conflict, InvalidInput, TargetNotFound
from decisions.foundation.security.sealed_columns import seal_column
from decisions.foundation.validation.storable import storable, storable_text
from decisions.identity.principals import Principal, TrustLevel
from decisions.models import Tenant, Workspace
from runners.models import ExecutionTarget, TargetKind
from runners.targets.roots import checked_root, refuse_taken_root
from runners.targets.runner_config import (
    agents_of,
    check_agents,
    checked_auth_token,
    checked_runner_columns,
    opening_of,
)

_ID = re.compile(r"target_[A-Za-z0-9_.-]{1,57}")
USABLE = (
    TargetKind.WORKSPACE,
    TargetKind.DOCKER_RUNNER,
)  # kinds that this version can execute tools on


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a tool: a principal, or the principal of a run."""

    principal_id: str
    tenant_id: str
    workspace_id: str
    trust: TrustLevel

    @classmethod
    def of(cls, principal: Principal) -> Caller:
        """Return the caller for a principal."""
        return cls(principal.id, principal.tenant_id, principal.workspace_id, principal.trust)


@dataclass(frozen=True, slots=True)
class TargetFields:
    """The fields of a target that a person sets.

    Attributes:
        workspace_id: None: all workspaces of the tenant.
        endpoint: URL of the runner.
        auth_token: bearer token of the runner; None: unchanged, "": none.
        opens_address: if the endpoint is on loopback, open its address for this target alone: an
            operator named it on the command line of this machine.
    """

    tenant_id: str
    workspace_id: str | None
    name: str
    kind: str = TargetKind.WORKSPACE
    endpoint: str | None = None
    auth_token: str | None = field(default=None, repr=False)
    is_default: bool = False
    enabled: bool = True
    config: Mapping[str, Any] = field(default_factory=dict)
    opens_address: bool = False


def visible_targets(caller: Caller) -> QuerySet[ExecutionTarget]:
    """Return the targets that a caller may name: those of its workspace and tenant, and, for local
    callers, the folders of this machine.
    """
    own = Q(workspace_id=caller.workspace_id) | Q(workspace_id__isnull=True)
    found = ExecutionTarget.objects.filter(own, tenant_id=caller.tenant_id)
    return found if caller.trust == "local" else found.filter(is_local=False)


def endpoint_of(target: ExecutionTarget) -> str | None:
    """Return the endpoint of a runner: the target's own, else that in its config."""
    return target.endpoint or target.config.get("endpoint")


def choose_target(caller: Caller, kind: str, target_id: str | None) -> ExecutionTarget | None:
    """Return the target of a call: the one it names, else the one assigned to its principal, else
    the default of its workspace, else that of its tenant, else None.

    Raises:
        TargetNotFound: The named target does not exist, belongs to another workspace, or is of
            another kind.
    """
    targets = visible_targets(caller).filter(kind=kind)
    if target_id is not None:
        named = targets.filter(id=target_id).first()
        if named is None:
            raise TargetNotFound(f"There is no target {target_id[:64]!r} of kind {kind} here.")
        return named
    taken = targets.filter(Q(is_default=True) | Q(config__has_key="agents"))
    return preferred_target(caller, taken.order_by("id"))


def preferred_target(caller: Caller, targets: Iterable[ExecutionTarget]) -> ExecutionTarget | None:
    """Return the target, of these of one kind, for a call that names none."""

    def rank(target: ExecutionTarget) -> tuple[bool, bool]:
        return caller.principal_id not in agents_of(target), target.workspace_id is None

    taken = [one for one in targets if one.is_default or caller.principal_id in agents_of(one)]
    return min(taken, key=rank, default=None)


def create_target_row(
    fields: TargetFields, *, actor: str, target_id: str | None = None
) -> ExecutionTarget:
    """Create a target and audit it. Commits.

    Raises:
        InvalidInput: The name, workspace, configuration or id is invalid.
        Conflict: Another target is the default, or has this id; details.targetId names it.
        RootTaken: The folder overlaps that of a target of another workspace.
    """
    checked, auth_token = _checked(fields, "")
    with transaction.atomic():
        target = ExecutionTarget(**checked)
        target.id = target.id if target_id is None else _checked_id(target_id)
        _set_auth_token(target, auth_token)
        refuse_taken_root(target)
        _save(target, is_new=True)
        _record("target.created", actor, target)
    return target


def change_target(
    target_id: str, fields: TargetFields, *, actor: str, if_version: int | None = None
) -> ExecutionTarget:
    """Replace the fields of a target and audit the change with the previous fields. Commits.

    Raises:
        TargetNotFound: There is no such target, or it is a local folder of this machine.
        InvalidInput, Conflict: As `create_target_row`; also if the kind or the version differs.
    """
    with transaction.atomic():
        target = _locked(target_id)
        checked, auth_token = _checked(fields, target.opened_address)
        if target.kind != fields.kind:
            raise InvalidInput(
                f"kind: the target is a {target.kind}; create a new target for another kind."
            )
        if if_version is not None and target.version != if_version:
            raise Conflict("The target was changed meanwhile. Read it again, then change it.")
        before, old_endpoint, old_root = _audit_data(target), endpoint_of(target), _root(target)
        for name, value in checked.items():
            setattr(target, name, value)
        _set_auth_token(target, auth_token)
        if _root(target) != old_root:
            refuse_taken_root(target)
        if endpoint_of(target) != old_endpoint:  # another runner: delete the old one's tools
            target.catalogue, target.catalogue_at, target.catalogue_error = [], None, None
        target.version += 1
        _save(target)
        _record("target.changed", actor, target, before=before)
    return target


def put_target(
    fields: TargetFields, *, actor: str, target_id: str | None = None
) -> ExecutionTarget:
    """Create a target with this id, or change the existing one. Commits.

    Raises:
        InvalidInput, Conflict: As `create_target_row` and `change_target`; also if the existing
            target belongs to another workspace.
    """
    found = ExecutionTarget.objects.filter(id=target_id).first() if target_id else None
    if found is None:
        return create_target_row(fields, actor=actor, target_id=target_id)
    if (found.tenant_id, found.workspace_id) != (fields.tenant_id, fields.workspace_id):
        raise Conflict(f"The target {found.id} belongs to another workspace.")
    return change_target(found.id, fields, actor=actor)


def allow_on_target(
    target: ExecutionTarget, tools: Iterable[str], *, reason: str, actor: str
) -> None:
    """Create policy rules that allow these tools on this target; `*` allows all its tools, also
    those of high risk. Existing rules for the same tool and target are changed. Commits.
    """
    scope = "workspace" if target.workspace_id else "tenant"
    scope_id = target.workspace_id or target.tenant_id
    for tool in dict.fromkeys(tools):
        rule = RuleFields("allow", scope, scope_id, tool, target.id, reason)
        ensure_rule(rule, actor=actor)


def delete_target(target_id: str, *, actor: str) -> None:
    """Delete a target, audit it, and retire the policy rules for it alone. Commits.

    A local folder of this machine becomes a target again when it is used again.

    Raises:
        TargetNotFound: There is no such target.
    """
    with transaction.atomic():
        target = _locked(target_id, is_local=True)
        for rule in list_rules_for_target(target.id):
            retire_rule(rule.key, actor=actor)
        _record("target.deleted", actor, target)
        target.delete()


def _root(target: ExecutionTarget) -> tuple[object, ...]:
    """Return the root with the callers who get it."""
    return target.config.get("root"), target.tenant_id, target.workspace_id


def _locked(target_id: str, *, is_local: bool = False) -> ExecutionTarget:
    locked = ExecutionTarget.objects.select_for_update()
    target = locked.filter(id=target_id, is_local__in=[False, is_local]).first()
    if target is None:
        raise TargetNotFound(f"There is no target {target_id[:64]!r} that can be changed.")
    return target


def _checked(fields: TargetFields, opened: str) -> tuple[dict[str, Any], str | None]:
    """Return the columns of a target, and its token apart: it is sealed for the target's id.

    Args:
        opened: the address that was opened for the target so far; it stays open for this address.
    """
    if fields.kind not in USABLE:
        raise InvalidInput(f"kind: targets of kind {fields.kind[:32]} cannot be created.")
    name = storable_text(fields.name).strip()
    if not 1 <= len(name) <= 128 or not name.isprintable():
        raise InvalidInput("name: must be 1 to 128 printable characters.")
    workspace = Workspace.objects.filter(tenant_id=fields.tenant_id, id=fields.workspace_id)
    tenant = Tenant.objects.filter(id=fields.tenant_id)
    if not (workspace if fields.workspace_id is not None else tenant).exists():
        raise InvalidInput("workspace: there is no such workspace or tenant.")
    check_agents(fields.config)
    columns = {**asdict(fields), "name": name}
    auth_token = checked_auth_token(columns.pop("auth_token"))
    opening = opening_of(fields.endpoint)
    opened = opening if columns.pop("opens_address") or opening == opened else ""
    if fields.kind != TargetKind.WORKSPACE:
        columns |= checked_runner_columns(fields.endpoint, fields.config, opened)
        return columns | {"opened_address": opened}, auth_token
    if fields.endpoint or auth_token:
        raise InvalidInput("endpoint, authToken: a workspace folder has none.")
    root = str(checked_root(str(fields.config.get("root", ""))))
    columns |= {"endpoint": None, "config": {**storable(fields.config), "root": root}}
    return columns, None


def _set_auth_token(target: ExecutionTarget, auth_token: str | None) -> None:
    """Encrypt a new token for its target; None leaves the present one, "" removes it."""
    if auth_token is not None:
        sealed = seal_column(target, "sealed_auth_token", auth_token.encode())
        target.sealed_auth_token = sealed if auth_token else None


def _checked_id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise InvalidInput("targetId: must be target_ and 1 to 57 letters, digits, dots, - or _.")
    return text


def _save(target: ExecutionTarget, *, is_new: bool = False) -> None:
    try:
        with transaction.atomic():
            target.save(force_insert=is_new)
    except IntegrityError:
        if is_new and ExecutionTarget.objects.filter(id=target.id).exists():
            details = {"targetId": target.id}
            raise Conflict(f"The target {target.id} already exists.", details=details) from None
        other = ExecutionTarget.objects.filter(
            tenant_id=target.tenant_id,
            workspace_id=target.workspace_id,
            kind=target.kind,
            is_default=True,
        ).first()
        named = f"{other.name} ({other.id})" if other else "another target"
        raise Conflict(
            f"The default target is {named}. Unset that first.",
            details={"targetId": other.id if other else ""},
        ) from None


def _audit_data(target: ExecutionTarget) -> dict[str, Any]:
    return {
        "version": target.version,
        "kind": target.kind,
        "name": target.name,
        "isDefault": target.is_default,
        "enabled": target.enabled,
        "config": target.config,
        "workspaceId": target.workspace_id,
        "endpoint": target.endpoint,
        "hasAuthToken": target.sealed_auth_token is not None,
        "openedAddress": target.opened_address,
    }


def _record(action: str, actor: str, target: ExecutionTarget, **more: Any) -> None:
    scope = target.tenant_id, target.workspace_id or ""
    record(AuditEvent(action, actor, "target", target.id, *scope, {**_audit_data(target), **more}))
