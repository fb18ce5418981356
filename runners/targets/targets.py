"""Targets: where tools are executed, whose they are, and which one a call means (S3 §2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from decisions.audit.record import AuditEvent, record
from decisions.authorization.policy_rules import (
    RuleFields,
    ensure_rule,
    list_rules_for_target,
    retire_rule,
)
from decisions.errors import Conflict, InvalidInput, TargetNotFound
from decisions.identity.principals import Principal, TrustLevel
from decisions.models import Tenant, Workspace
from decisions.security.keys import seal
from decisions.validation.storable import storable, storable_text
from runners.models import ExecutionTarget, TargetKind
from runners.targets.local_folder import is_folder
from runners.targets.runner_config import agents_of, check_agents, checked_auth_token, checked_place

_ID = re.compile(r"target_[A-Za-z0-9_.-]{1,57}")
USABLE = (TargetKind.WORKSPACE, TargetKind.DOCKER_RUNNER)  # what tools run on in this version


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose call it is: what targets and their tools ask of a principal, or of a run."""

    principal_id: str
    tenant_id: str
    workspace_id: str
    trust: TrustLevel

    @classmethod
    def of(cls, principal: Principal) -> Caller:
        """Return the caller that a principal is."""
        return cls(principal.id, principal.tenant_id, principal.workspace_id, principal.trust)


@dataclass(frozen=True, slots=True)
class TargetSays:
    """What a target is; the attributes of ExecutionTarget that a person chooses.

    Attributes:
        workspace_id: None: every workspace's of the tenant.
        endpoint: where a runner listens.
        auth_token: what a runner is called with; None: as it was, "": without one.
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


def visible_targets(caller: Caller) -> QuerySet[ExecutionTarget]:
    """Return the targets that a caller may name: those of its workspace and of its tenant, and
    this machine's own folders for local callers.
    """
    own = Q(workspace_id=caller.workspace_id) | Q(workspace_id__isnull=True)
    found = ExecutionTarget.objects.filter(own, tenant_id=caller.tenant_id)
    return found if caller.trust == "local" else found.filter(is_local=False)


def choose_target(caller: Caller, kind: str, target_id: str | None) -> ExecutionTarget | None:
    """Return the target that a call means: the one it names, else the one that is its agent's, else
    the default of its workspace, else that of its tenant; None where it names none and there is
    none of those.

    Raises:
        TargetNotFound: It names one that is not there, is another's, or is of another kind.
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
    """Return which of these targets of one kind a call goes to that names none."""

    def rank(target: ExecutionTarget) -> tuple[bool, bool]:
        return caller.principal_id not in agents_of(target), target.workspace_id is None

    taken = [one for one in targets if one.is_default or caller.principal_id in agents_of(one)]
    return min(taken, key=rank, default=None)


def make_target(says: TargetSays, *, actor: str, target_id: str | None = None) -> ExecutionTarget:
    """Make a target, audited. Commits.

    Raises:
        InvalidInput: A name, place, configuration or id that no target can have.
        Conflict: Another one is the default, or has this id; details.targetId names it.
    """
    checked = _checked(says)
    with transaction.atomic():
        target = ExecutionTarget(**checked)
        target.id = target.id if target_id is None else _checked_id(target_id)
        _save(target, is_new=True)
        _record("target.created", actor, target)
    return target


def change_target(
    target_id: str, says: TargetSays, *, actor: str, if_version: int | None = None
) -> ExecutionTarget:
    """Have a target be something else from the next call on, audited with what it was. Commits.

    Raises:
        TargetNotFound: There is no such target, or it is this machine's own.
        InvalidInput, Conflict: As `make_target`; also: it is of another kind, or not in the version
            `if_version`.
    """
    checked = _checked(says)
    with transaction.atomic():
        target = _locked(target_id)
        if target.kind != says.kind:
            raise InvalidInput(
                f"kind: it is a {target.kind}; make another target for another kind."
            )
        if if_version is not None and target.version != if_version:
            raise Conflict("Somebody changed it meanwhile; look at it again, then change it.")
        before, was_at = _told(target), _listens_at(target)
        for name, value in checked.items():
            setattr(target, name, value)
        if _listens_at(target) != was_at:  # another runner: what the one before offered is over
            target.catalogue, target.catalogue_at, target.catalogue_error = [], None, None
        target.version += 1
        _save(target)
        _record("target.changed", actor, target, before=before)
    return target


def put_target(says: TargetSays, *, actor: str, target_id: str | None = None) -> ExecutionTarget:
    """Make a target of this id, or have the one that there is be what is said. Commits.

    Raises:
        InvalidInput, Conflict: As `make_target` and `change_target`; also: the target of this id is
            another workspace's.
    """
    found = ExecutionTarget.objects.filter(id=target_id).first() if target_id else None
    if found is None:
        return make_target(says, actor=actor, target_id=target_id)
    if (found.tenant_id, found.workspace_id) != (says.tenant_id, says.workspace_id):
        raise Conflict(f"The target {found.id} is another workspace's.")
    return change_target(found.id, says, actor=actor)


def allow_on_target(target: ExecutionTarget, tools: Iterable[str], *, actor: str) -> None:
    """Let a workspace call these tools on a target, and on no other; * is every tool of it, those
    of high risk too. Rules that say something else of just this are changed. Commits.
    """
    scope = "workspace" if target.workspace_id else "tenant"
    scope_id = target.workspace_id or target.tenant_id
    for tool in dict.fromkeys(tools):
        says = RuleFields("allow", scope, scope_id, tool, target.id, "allowed as it was added")
        ensure_rule(says, actor=actor)


def delete_target(target_id: str, *, actor: str) -> None:
    """Take a target away, audited; the rules of policy about it alone are retired. Commits.

    Raises:
        TargetNotFound: As `change_target`.
    """
    with transaction.atomic():
        target = _locked(target_id)
        for key in list_rules_for_target(target.id):
            retire_rule(key, actor=actor)
        _record("target.deleted", actor, target)
        target.delete()


def _locked(target_id: str) -> ExecutionTarget:
    locked = ExecutionTarget.objects.select_for_update()
    target = locked.filter(id=target_id, is_local=False).first()
    if target is None:
        raise TargetNotFound(f"There is no target {target_id[:64]!r} to be changed.")
    return target


def checked_root(text: str) -> Path:
    """Return the root of a workspace as a real path.

    Raises:
        InvalidInput: It is no folder, is ours, or does not lie below CONTINUITY_WORKSPACE_ROOTS.
    """
    given = Path(text)
    if not given.is_absolute() or "\0" in text or not is_folder(given):
        raise InvalidInput("config.root: it has to be the absolute path of a folder that is there.")
    root = given.resolve()
    if not is_allowed_root(root):
        raise InvalidInput(
            "config.root: it has to lie below one of CONTINUITY_WORKSPACE_ROOTS, and apart from"
            " CONTINUITY_HOME."
        )
    return root


def is_allowed_root(root: Path) -> bool:
    """Tell whether a real path lies below a root that the operator named, and is not ours."""
    if is_ours(root):
        return False
    return any(root.is_relative_to(allowed.resolve()) for allowed in settings.WORKSPACE_ROOTS)


def is_ours(root: Path) -> bool:
    """Tell whether a real path is CONTINUITY_HOME or lies in it, beside our keys and database."""
    return root.is_relative_to(settings.CONTINUITY_HOME.resolve())


def _checked(says: TargetSays) -> dict[str, Any]:
    if says.kind not in USABLE:
        raise InvalidInput(f"kind: targets of kind {says.kind[:32]} cannot be made here.")
    name = storable_text(says.name).strip()
    if not 1 <= len(name) <= 128 or not name.isprintable():
        raise InvalidInput("name: 1 to 128 printable characters.")
    place = Workspace.objects.filter(tenant_id=says.tenant_id, id=says.workspace_id)
    tenant = Tenant.objects.filter(id=says.tenant_id)
    if not (place if says.workspace_id is not None else tenant).exists():
        raise InvalidInput("workspace: there is no such workspace or tenant.")
    check_agents(says.config)
    told = {**asdict(says), "name": name}
    auth_token = checked_auth_token(told.pop("auth_token"))
    if says.kind != TargetKind.WORKSPACE:
        sealed = {} if auth_token is None else {"sealed_auth_token": _sealed(auth_token)}
        return {**told, **checked_place(says.endpoint, says.config), **sealed}
    if says.endpoint or auth_token:
        raise InvalidInput("endpoint, authToken: a folder has none.")
    root = str(checked_root(str(says.config.get("root", ""))))
    return {**told, "endpoint": None, "config": {**storable(says.config), "root": root}}


def _sealed(auth_token: str) -> bytes | None:
    return seal(auth_token.encode()) if auth_token else None


def _checked_id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise InvalidInput("targetId: target_ and 1 to 57 letters, digits, dots, - or _.")
    return text


def _save(target: ExecutionTarget, *, is_new: bool = False) -> None:
    try:
        with transaction.atomic():
            target.save(force_insert=is_new)
    except IntegrityError:
        if is_new and ExecutionTarget.objects.filter(id=target.id).exists():
            told = {"targetId": target.id}
            raise Conflict(f"There is a target {target.id} already.", details=told) from None
        other = ExecutionTarget.objects.filter(
            tenant_id=target.tenant_id,
            workspace_id=target.workspace_id,
            kind=target.kind,
            is_default=True,
        ).first()
        named = f"{other.name} ({other.id})" if other else "another one"
        raise Conflict(
            f"The default is {named}; take that from it first.",
            details={"targetId": other.id if other else ""},
        ) from None


def _listens_at(target: ExecutionTarget) -> str | None:
    return target.endpoint or target.config.get("endpoint")


def _told(target: ExecutionTarget) -> dict[str, Any]:
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
    }


def _record(action: str, actor: str, target: ExecutionTarget, **more: Any) -> None:
    place = target.tenant_id, target.workspace_id or ""
    record(AuditEvent(action, actor, "target", target.id, *place, {**_told(target), **more}))
