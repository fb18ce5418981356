"""Project workspaces: the folder of a call, and what the caller's tools may do there (S4 §6)."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from decisions.audit.record import AuditEvent, record
from decisions.foundation.errors import NotFound
from decisions.identity.principals import LOCAL, local_principal
from runners.models import ExecutionTarget, TargetKind
from runners.targets.local_folder import LocalFolder, is_folder, local_folder
from runners.targets.roots import belongs_to_others, is_allowed_root, is_own_folder
from runners.targets.targets import Caller, choose_target
from runners.tools.base import Tool
from runners.tools.registry import list_tools
from runners.trust_level import TrustLevel
from runners.workspace.errors import PathNotFound, PolicyViolation, ToolDisabled
from runners.workspace.policy_file import deny_all_policy, effective_policy
from runners.workspace.workspace import ProjectWorkspace, WorkspacePolicy

_REPORTS_POLICY = "get_runtime_info"  # must not fail because of the policy file (S4 §2.6)
_NO_FOLDER = {
    "EN": "Name a targetId, or ask an operator to create a target of kind workspace.",
    "ZH": "请指定 targetId，或请管理员创建 workspace 类型的目标。",
}
_OTHER_TARGET = {
    "EN": "GET /tools lists the targets that a call may name.",
    "ZH": "GET /tools 列出可以指定的目标。",
}
_DEVELOPER_MODE = {
    "EN": "Enable it with CONTINUITY_DEVELOPER=1 or mcp_stdio --toolsets developer.",
    "ZH": "请以 CONTINUITY_DEVELOPER=1 或 mcp_stdio 的 --toolsets developer 启用开发者模式。",
}


def open_workspace(
    caller: Caller,
    target_id: str | None = None,
    *,
    tool: str = "",
) -> ProjectWorkspace:
    """Return the workspace of a call.

    It is the target that the call names, else the folder that the local caller's command line
    names, else the default target of the caller's workspace or tenant, else the local folder.

    Args:
        tool: the tool to be called; `get_runtime_info` reports an invalid policy file.

    Raises:
        PathNotFound: The named target does not exist or belongs to another workspace.
        ToolDisabled: There is no folder for this caller, or it is disabled or missing.
        PolicyViolation: The policy file in its root is invalid.
    """
    target = find_target(caller, target_id)
    return open_target(caller, target, developer_target=None, tool=tool)


def open_target(
    caller: Caller,
    target: ExecutionTarget,
    *,
    offered: tuple[str, ...] | None = None,
    developer_target: str | None,
    tool: str,
) -> ProjectWorkspace:
    """Return the workspace of a target, as `open_workspace` does.

    Args:
        developer_target: target for which the submitter of the run enabled developer mode
            (`developer_mode_target`).

    Raises:
        ToolDisabled, PolicyViolation: As `open_workspace`.
    """
    if not target.enabled:
        details = {"targetId": target.id}
        raise ToolDisabled(f"The workspace {target.name!r} is disabled.", details=details)
    root = _root_of(target)
    allowed = _settings_for(target, root, developer_target)
    policy, error = _policy(allowed, root, is_reported=tool == _REPORTS_POLICY)
    return ProjectWorkspace(
        target_id=target.id,
        root=root,
        state=state_folder(root),
        principal_id=caller.principal_id,
        policy=policy,
        offered_tools=_usable(policy) if offered is None else offered,
        policy_error=error,
    )


def developer_mode_target(caller: Caller) -> str | None:
    """Return the target for which this process's command line enabled developer mode, if it is the
    caller's. A run stores it, because a worker has another command line.
    """
    root = _developer_root()
    # Last, because it is a query and every submit calls this function.
    if root is None or not _is_of_this_machine(caller):
        return None
    return _local_target_id(local_principal().workspace_id, root)


def check_may_use(tool: Tool, workspace: ProjectWorkspace, *, trust: TrustLevel) -> None:
    """Refuse a workspace tool that this caller may not use in this workspace.

    Raises:
        ToolDisabled: The tool needs developer mode, which is off, or it reaches processes or
            loopback addresses of this machine, which only local callers may.
    """
    if tool.developer and not workspace.policy.developer:
        raise ToolDisabled(
            f"{tool.name} needs developer mode, which is off.",
            hint=_DEVELOPER_MODE[workspace.policy.language],
        )
    if (tool.developer or tool.uses_browser) and trust != "local":
        raise ToolDisabled(
            f"{tool.name} needs the trust level local.", details={"trustLevel": trust}
        )


def find_target(caller: Caller, target_id: str | None = None) -> ExecutionTarget:
    """Return the target that `open_workspace` opens, enabled or not.

    Raises:
        PathNotFound, ToolDisabled: As `open_workspace`.
    """
    local = local_folder()
    is_local = target_id is None and _is_of_this_machine(caller)
    if is_local and local.is_named and local.root is not None:
        return _local_target(local)
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
    if is_local and local.root is not None:
        return _local_target(local)
    reason = local.why if is_local else "No folder is configured for this workspace."
    raise ToolDisabled(
        f"There is no workspace folder. {reason}",
        hint=_NO_FOLDER[settings.WORKSPACE_POLICY.language],
    )


def state_folder(root: Path) -> Path:
    """Return the folder for the state of a workspace (snapshots, locks), which is outside of the
    workspace and the same for all targets with this root; create it if needed.
    """
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
    folder: Path = settings.CONTINUITY_HOME / "workspaces" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _is_of_this_machine(caller: Caller) -> bool:
    """Return whether the caller may use this machine's own folder: local callers in the workspace
    of `mcp_stdio`.
    """
    if caller.trust != "local":
        return False
    return caller.principal_id == LOCAL or caller.workspace_id == local_principal().workspace_id


def _local_target(folder: LocalFolder) -> ExecutionTarget:
    """Return the target of this machine's own folder; create it at its first use."""
    given = folder.root or Path()
    if not is_folder(given):
        raise ToolDisabled(f"The workspace folder {given} does not exist.")
    principal, root = local_principal(), given.resolve()
    config: dict[str, Any] = {"root": str(root)}
    target_id = _local_target_id(principal.workspace_id, root)
    found = ExecutionTarget.objects.filter(id=target_id).first()
    if found is not None:
        return found
    scope = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id}
    target = ExecutionTarget(
        id=target_id,
        **scope,
        kind=TargetKind.WORKSPACE,
        name=root.name[:128] or "/",
        config=config,
        is_local=True,
    )
    try:
        with transaction.atomic():
            target.save(force_insert=True)
            data = {"kind": "workspace", "isLocal": True, "config": config}
            record(
                AuditEvent(
                    "target.created", principal.id, "target", target_id, **scope, metadata=data
                )
            )
    except IntegrityError:  # another process was first
        return ExecutionTarget.objects.get(id=target_id)
    return target


def _local_target_id(workspace_id: str, root: Path) -> str:
    key = f"{workspace_id}|{root}".encode(errors="surrogateescape")
    return f"target_{hashlib.sha256(key).hexdigest()[:26]}"


def _root_of(target: ExecutionTarget) -> Path:
    """Return the real root; it may have changed since the target was created."""
    given = Path(str(target.config.get("root", "")))
    if not is_folder(given) or not _may_be_root(target, given.resolve()):
        raise ToolDisabled(
            f"The folder of the workspace {target.name!r} is missing or no longer allowed.",
            details={"targetId": target.id},
        )
    root = given.resolve()
    if belongs_to_others(target, root):
        raise ToolDisabled(
            f"The folder of the workspace {target.name!r} overlaps one that belongs to another"
            " workspace.",
            details={"targetId": target.id},
        )
    return root


def _may_be_root(target: ExecutionTarget, root: Path) -> bool:
    return not is_own_folder(root) if target.is_local else is_allowed_root(root)


def _usable(policy: WorkspacePolicy) -> tuple[str, ...]:
    tools = list_tools("workspace")
    return tuple(tool.name for tool in tools if policy.developer or not tool.developer)


def _developer_root() -> Path | None:
    """Return the real folder for which this process's command line enabled developer mode."""
    local = local_folder()
    if local.root is None or not local.developer or not is_folder(local.root):
        return None
    return local.root.resolve()


def _settings_for(
    target: ExecutionTarget, root: Path, developer_target: str | None
) -> WorkspacePolicy:
    """Return the policy of the settings for a folder, before its policy file is applied. Developer
    mode comes from the settings or a command line, never from a row.
    """
    policy: WorkspacePolicy = settings.WORKSPACE_POLICY
    home: Path = settings.CONTINUITY_HOME.resolve()
    if home.is_relative_to(root):
        policy = replace(policy, forbidden=(*policy.forbidden, home.name))
    enabled_here = _developer_root() == root
    if target.is_local and (enabled_here or developer_target == target.id):
        policy = replace(policy, developer=True)
    return policy


def _policy(
    allowed: WorkspacePolicy, root: Path, *, is_reported: bool
) -> tuple[WorkspacePolicy, str]:
    """Return the effective policy of a folder. With `is_reported`, an invalid policy file gives a
    policy that denies everything and the error's message, instead of an exception.
    """
    try:
        return effective_policy(allowed, root), ""
    except PolicyViolation as wrong:
        if not is_reported:
            raise
        return deny_all_policy(allowed), wrong.message
