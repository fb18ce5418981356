"""Workspaces: which folder a call works in, and what the caller's tools may do there (S4 §6)."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from decisions.audit.record import AuditEvent, record
from decisions.errors import NotFound
from decisions.identity.principals import LOCAL, local_principal
from runners.models import ExecutionTarget, TargetKind
from runners.targets.local_folder import LocalFolder, is_folder, local_folder
from runners.targets.targets import Caller, choose_target, is_allowed_root, is_ours
from runners.tools.base import Tool
from runners.tools.registry import list_tools
from runners.trust import TrustLevel
from runners.workspace.errors import PathNotFound, PolicyViolation, ToolDisabled
from runners.workspace.policy_file import deny_all_policy, effective_policy
from runners.workspace.workspace import Workspace, WorkspacePolicy

_TELLS_POLICY = "get_runtime_info"  # and reads nothing; it should not fail (S4 §2.6)
_NO_FOLDER = {
    "EN": "Name a targetId, or have an operator make a target of kind workspace.",
    "ZH": "请指定 targetId，或请管理员创建 workspace 类型的目标。",
}
_OTHER_TARGET = {
    "EN": "GET /tools names the targets that a call may name.",
    "ZH": "GET /tools 列出可以指定的目标。",
}
_DEVELOPER_MODE = {
    "EN": "Turn it on with CONTINUITY_DEVELOPER=1, or mcp_stdio's --toolsets developer.",
    "ZH": "请以 CONTINUITY_DEVELOPER=1 或 mcp_stdio 的 --toolsets developer 启用开发者模式。",
}


def open_workspace(
    caller: Caller,
    target_id: str | None = None,
    *,
    offered: tuple[str, ...] | None = None,
    developer_target: str | None = None,
    tool: str = "",
) -> Workspace:
    """Return the folder that a call works in, as its tools see it.

    The target that the call names, else a folder that the local caller's command line names, else
    the default of the caller's workspace, of its tenant, else the built-in local one.

    Args:
        offered: names of the tools that the caller's door offers; otherwise all that may be used
            there.
        developer_target: whoever handed in the run that makes the call chose developer mode for
            this target (`developer_target_of`).
        tool: what will be called; `get_runtime_info` may tell of a policy file that is wrong.

    Raises:
        PathNotFound: The call names a target that is not there, or is another's.
        ToolDisabled: There is no folder for this caller, or it is disabled or gone.
        PolicyViolation: The policy file in its root cannot be followed.
    """
    target = find_target(caller, target_id)
    return open_target(
        caller, target, offered=offered, developer_target=developer_target, tool=tool
    )


def open_target(
    caller: Caller,
    target: ExecutionTarget,
    *,
    offered: tuple[str, ...] | None = None,
    developer_target: str | None = None,
    tool: str = "",
) -> Workspace:
    """Return the folder of a target of the caller's, as `open_workspace` does.

    Raises:
        ToolDisabled, PolicyViolation: As `open_workspace`.
    """
    if not target.enabled:
        about = {"targetId": target.id}
        raise ToolDisabled(f"The workspace {target.name!r} is disabled.", details=about)
    root = _root_of(target)
    settings_say = _settings_for(target, root, developer_target)
    policy, trouble = _policy(settings_say, root, is_told_only=tool == _TELLS_POLICY)
    return Workspace(
        target_id=target.id,
        root=root,
        state=state_of(root),
        principal_id=caller.principal_id,
        policy=policy,
        offered_tools=_usable(policy) if offered is None else offered,
        policy_error=trouble,
    )


def developer_target_of(caller: Caller) -> str | None:
    """Return the target for which this process's command line chose developer mode, where it is
    the caller's: a run takes it along, for a worker's command line says nothing of it.
    """
    here = _developed_here()
    # Asked last, for it is a query, and every submit comes by here.
    if here is None or not _is_of_this_machine(caller):
        return None
    return _local_target_id(local_principal().workspace_id, here)


def check_may_use(tool: Tool, workspace: Workspace, *, trust: TrustLevel) -> None:
    """Refuse a workspace tool that is not for this caller, or not for this workspace.

    Raises:
        ToolDisabled: It is for developer mode and that is off, or it reaches what only local
            callers may: this machine's processes and its loopback.
    """
    if tool.developer and not workspace.policy.developer:
        raise ToolDisabled(
            f"{tool.name} is for developer mode, which is off.",
            hint=_DEVELOPER_MODE[workspace.policy.language],
        )
    if (tool.developer or tool.uses_browser) and trust != "local":
        raise ToolDisabled(
            f"{tool.name} is for callers of trust level local.", details={"trustLevel": trust}
        )


def find_target(caller: Caller, target_id: str | None = None) -> ExecutionTarget:
    """Return the target that `open_workspace` opens, enabled or not.

    Raises:
        PathNotFound, ToolDisabled: As `open_workspace`.
    """
    mine = local_folder()
    is_mine = target_id is None and _is_of_this_machine(caller)
    if is_mine and mine.is_named and mine.root is not None:
        return _local_target(mine)
    try:
        target = choose_target(caller, TargetKind.WORKSPACE, target_id)
    except NotFound as missing:
        raise PathNotFound(
            missing.message,
            details={"targetId": target_id},
            hint=_OTHER_TARGET[settings.WORKSPACE_POLICY.language],
        ) from None
    if target is not None:
        return target
    if is_mine and mine.root is not None:
        return _local_target(mine)
    told = mine.why if is_mine else "No folder is set up for this workspace."
    raise ToolDisabled(
        f"There is no workspace folder to work in. {told}",
        hint=_NO_FOLDER[settings.WORKSPACE_POLICY.language],
    )


def state_of(root: Path) -> Path:
    """Return our folder for what is kept of a workspace, outside of it; the same for every target
    with this root.
    """
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
    folder: Path = settings.CONTINUITY_HOME / "workspaces" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _is_of_this_machine(caller: Caller) -> bool:
    """Tell whether this machine's own folder is the caller's: a local one, in the workspace that
    stdio acts in.
    """
    if caller.trust != "local":
        return False
    return caller.principal_id == LOCAL or caller.workspace_id == local_principal().workspace_id


def _local_target(folder: LocalFolder) -> ExecutionTarget:
    """Return the row of this machine's own folder, made at its first use: runs name it."""
    given = folder.root or Path()
    if not is_folder(given):
        raise ToolDisabled(f"The workspace folder {given} is not there.")
    principal, root = local_principal(), given.resolve()
    config: dict[str, Any] = {"root": str(root)}
    made_id = _local_target_id(principal.workspace_id, root)
    found = ExecutionTarget.objects.filter(id=made_id).first()
    if found is not None:
        return found
    place = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id}
    target = ExecutionTarget(
        id=made_id,
        **place,
        kind=TargetKind.WORKSPACE,
        name=root.name[:128] or "/",
        config=config,
        is_local=True,
    )
    try:
        with transaction.atomic():
            target.save(force_insert=True)
            told_of = {"kind": "workspace", "isLocal": True, "config": config}
            record(
                AuditEvent(
                    "target.created", principal.id, "target", made_id, **place, metadata=told_of
                )
            )
    except IntegrityError:  # another process was first
        return ExecutionTarget.objects.get(id=made_id)
    return target


def _local_target_id(workspace_id: str, root: Path) -> str:
    told = f"{workspace_id}|{root}".encode(errors="surrogateescape")
    return f"target_{hashlib.sha256(told).hexdigest()[:26]}"


def _root_of(target: ExecutionTarget) -> Path:
    """Return the real root; what it was when the target was made may have changed since."""
    given = Path(str(target.config.get("root", "")))
    if not is_folder(given) or not _may_be_root(target, given.resolve()):
        raise ToolDisabled(
            f"The folder of the workspace {target.name!r} is gone, or is not allowed any more.",
            details={"targetId": target.id},
        )
    return given.resolve()


def _may_be_root(target: ExecutionTarget, root: Path) -> bool:
    return not is_ours(root) if target.is_local else is_allowed_root(root)


def _usable(policy: WorkspacePolicy) -> tuple[str, ...]:
    tools = list_tools("workspace")
    return tuple(tool.name for tool in tools if policy.developer or not tool.developer)


def _developed_here() -> Path | None:
    """Return the real folder for which this process's command line chose developer mode."""
    mine = local_folder()
    if mine.root is None or not mine.developer or not is_folder(mine.root):
        return None
    return mine.root.resolve()


def _settings_for(
    target: ExecutionTarget, root: Path, developer_target: str | None
) -> WorkspacePolicy:
    """Return what may be done there, but for the file in its root; developer mode is a word of the
    settings or of a command line alone, and no row keeps it.
    """
    policy: WorkspacePolicy = settings.WORKSPACE_POLICY
    home: Path = settings.CONTINUITY_HOME.resolve()
    if home.is_relative_to(root):
        policy = replace(policy, forbidden=(*policy.forbidden, home.name))
    chosen_here = _developed_here() == root
    if target.is_local and (chosen_here or developer_target == target.id):
        policy = replace(policy, developer=True)
    return policy


def _policy(
    settings_say: WorkspacePolicy, root: Path, *, is_told_only: bool
) -> tuple[WorkspacePolicy, str]:
    """Return what may be done in a folder, and why its file cannot be followed where it is only
    told; raised otherwise.
    """
    try:
        return effective_policy(settings_say, root), ""
    except PolicyViolation as wrong:
        if not is_told_only:
            raise
        return deny_all_policy(settings_say), wrong.message
