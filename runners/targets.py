"""Targets: where tools are executed, whose they are, and which one a call means (S3 §2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet

from decisions.audit import Deed, record
from decisions.errors import Conflict, InvalidInput, NotFound
from decisions.models import Tenant, Workspace
from decisions.principals import Principal, TrustLevel
from decisions.storable import storable, storable_text
from runners.local_folder import is_folder
from runners.models import ExecutionTarget, TargetKind

USABLE = (TargetKind.WORKSPACE,)  # the kinds that tools run on in this version


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
    """

    tenant_id: str
    workspace_id: str | None
    name: str
    kind: str = TargetKind.WORKSPACE
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
    """Return the target that a call means: the one it names, else the default of its workspace,
    else that of its tenant; None where it names none and there is no default.

    Raises:
        NotFound: It names one that is not there, is another's, or is of another kind.
    """
    targets = visible_targets(caller).filter(kind=kind)
    if target_id is not None:
        named = targets.filter(id=target_id).first()
        if named is None:
            raise NotFound(f"There is no target {target_id[:64]!r} of kind {kind} here.")
        return named
    defaults = targets.filter(is_default=True)
    return defaults.order_by(F("workspace_id").asc(nulls_last=True)).first()


def make_target(says: TargetSays, *, actor: str) -> ExecutionTarget:
    """Make a target, audited. Commits.

    Raises:
        InvalidInput: A name, place or configuration that no target can have.
        Conflict: Another one is the default; details.targetId names it.
    """
    checked = _checked(says)
    with transaction.atomic():
        target = ExecutionTarget(**checked)
        _save(target)
        _record("target.created", actor, target)
    return target


def change_target(
    target_id: str, says: TargetSays, *, actor: str, if_version: int | None = None
) -> ExecutionTarget:
    """Have a target be something else from the next call on, audited with what it was. Commits.

    Raises:
        NotFound: There is no such target, or it is this machine's own.
        InvalidInput, Conflict: As `make_target`; also: it is not in the version `if_version`.
    """
    checked = _checked(says)
    with transaction.atomic():
        locked = ExecutionTarget.objects.select_for_update()
        target = locked.filter(id=target_id, is_local=False).first()
        if target is None:
            raise NotFound(f"There is no target {target_id[:64]!r} to be changed.")
        if if_version is not None and target.version != if_version:
            raise Conflict("Somebody changed it meanwhile; look at it again, then change it.")
        before = _told(target)
        for name, value in checked.items():
            setattr(target, name, value)
        target.version += 1
        _save(target)
        _record("target.changed", actor, target, before=before)
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
    config = {**storable(says.config), "root": str(checked_root(str(says.config.get("root", ""))))}
    return {**asdict(says), "name": name, "config": config}


def _save(target: ExecutionTarget) -> None:
    try:
        with transaction.atomic():
            target.save()
    except IntegrityError:
        other = ExecutionTarget.objects.filter(
            tenant_id=target.tenant_id, workspace_id=target.workspace_id, kind=target.kind,
            is_default=True,
        ).first()  # fmt: skip
        named = f"{other.name} ({other.id})" if other else "another one"
        raise Conflict(
            f"The default is {named}; take that from it first.",
            details={"targetId": other.id if other else ""},
        ) from None


def _told(target: ExecutionTarget) -> dict[str, Any]:
    return {
        "version": target.version, "kind": target.kind, "name": target.name,
        "isDefault": target.is_default, "enabled": target.enabled, "config": target.config,
        "workspaceId": target.workspace_id,
    }  # fmt: skip


def _record(action: str, actor: str, target: ExecutionTarget, **more: Any) -> None:
    place = target.tenant_id, target.workspace_id or ""
    record(Deed(action, actor, "target", target.id, *place, {**_told(target), **more}))
