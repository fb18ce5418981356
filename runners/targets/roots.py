"""Roots of project workspaces: which folders may be one, and for which target.

A folder belongs to the target that had it first. A target of other callers may have neither this
folder nor one that contains it or is inside of it. This is checked when a target is saved and at
each use, because targets may be older than the rule, and links and mounts can change later.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db.models import Q

from decisions.foundation.errors import Conflict, InvalidInput
from decisions.models import Tenant
from runners.models import ExecutionTarget, TargetKind
from runners.targets.folder_overlap import FolderPlace, read_mounts
from runners.targets.local_folder import is_folder


class RootTaken(Conflict):
    """The root overlaps the root of a target that other callers have.

    The message names that target, so it is for operators only; `for_callers` is for the others.
    """

    def __init__(self, other: ExecutionTarget) -> None:
        super().__init__(
            f"config.root: the folder overlaps that of the target {other.name} ({other.id}), which"
            " belongs to another workspace. Choose another folder, or change that target first.",
            details={"targetId": other.id},
        )

    @staticmethod
    def for_callers() -> Conflict:
        """Return the error for callers who may not know the other target."""
        return Conflict(
            "config.root: the folder overlaps one that belongs to another workspace. Choose"
            " another folder, or ask an operator."
        )


def checked_root(text: str) -> Path:
    """Check the root folder of a workspace and return its real path.

    Raises:
        InvalidInput: It is not a folder, is in CONTINUITY_HOME, or not below
            CONTINUITY_WORKSPACE_ROOTS.
    """
    given = Path(text)
    if not given.is_absolute() or "\0" in text or not is_folder(given):
        raise InvalidInput("config.root: must be the absolute path of an existing folder.")
    root = given.resolve()
    if not is_allowed_root(root):
        raise InvalidInput(
            "config.root: must be below one of CONTINUITY_WORKSPACE_ROOTS and outside of"
            " CONTINUITY_HOME."
        )
    return root


def is_allowed_root(root: Path) -> bool:
    """Return whether a real path is below an allowed root and outside of CONTINUITY_HOME."""
    if is_own_folder(root):
        return False
    return any(root.is_relative_to(allowed.resolve()) for allowed in settings.WORKSPACE_ROOTS)


def is_own_folder(root: Path) -> bool:
    """Return whether a real path is CONTINUITY_HOME or below it, where keys and database are."""
    return root.is_relative_to(settings.CONTINUITY_HOME.resolve())


def refuse_taken_root(target: ExecutionTarget) -> None:
    """Refuse to save a workspace whose root overlaps that of a target of other callers. Call it in
    the transaction that saves the target.

    Raises:
        RootTaken: As described.
    """
    if target.kind != TargetKind.WORKSPACE:
        return
    # One save at a time, so that two targets cannot take the same folder at once.
    Tenant.objects.select_for_update(no_key=True).order_by("created_at", "id").first()
    mounts = read_mounts()
    place = FolderPlace(_recorded_root(target), mounts)
    for other in _targets_of_others(target):
        if place.overlaps(FolderPlace(_recorded_root(other), mounts)):
            raise RootTaken(other)


def belongs_to_others(target: ExecutionTarget, root: Path) -> bool:
    """Return whether the real root of an existing target overlaps a folder that a target of other
    callers had first. A target whose root has become a link to another place has it last.
    """
    others = _targets_of_others(target)
    if not others:
        return False
    mounts, was_moved = read_mounts(), root != _recorded_root(target)
    place = FolderPlace(root, mounts)
    for other in others:
        theirs = FolderPlace(_recorded_root(other), mounts)
        if not place.overlaps(theirs):
            continue
        is_theirs = theirs.real == str(_recorded_root(other))
        if was_moved or (is_theirs and _age(other) < _age(target)):
            return True
    return False


def _targets_of_others(target: ExecutionTarget) -> list[ExecutionTarget]:
    """Return the workspaces that some callers of this target may not use."""
    same_callers = Q(workspace_id__isnull=True)
    if target.workspace_id is not None:
        same_callers |= Q(workspace_id=target.workspace_id)
    others = ExecutionTarget.objects.filter(kind=TargetKind.WORKSPACE).exclude(id=target.id)
    others = others.exclude(same_callers, tenant_id=target.tenant_id)
    return list(others.only("id", "name", "config", "created_at").order_by("created_at", "id"))


def _recorded_root(target: ExecutionTarget) -> Path:
    """Return the root as it was saved: a real path then."""
    return Path(str(target.config.get("root", "")))


def _age(target: ExecutionTarget) -> tuple[object, str]:
    return target.created_at, target.id
