"""Snapshots of workspaces as operators handle them: compared with the file as it is, put back."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from decisions.audit.record import AuditEvent, record
from decisions.authorization.authorize import admit_call, tool_call_request, use_approval
from decisions.identity.principals import Principal
from runners.workspace.errors import PathNotFound, WorkspaceFailed
from runners.workspace.files.sandbox import Sandbox, decode_text
from runners.workspace.workspace import Workspace, WorkspacePolicy
from runners.workspace.writing import snapshots
from runners.workspace.writing.crash_recovery import sweep_state
from runners.workspace.writing.deleted_files import DeletedFileLimits, prune_deleted_files
from runners.workspace.writing.snapshots import Snapshot
from runners.workspace.writing.write_text import WriteResult, preview_text, write_text

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Compared:
    """A snapshot beside its file.

    Attributes:
        now: the file's text; None where there is no such file.
        trouble: why it cannot be shown; `now` is None then, too.
    """

    snapshot: Snapshot
    then: str
    now: str | None
    trouble: str = ""


def compare_with_now(workspace: Workspace, snapshot_id: str) -> Compared:
    """Return a snapshot and its file as it is now.

    Raises:
        PathDenied: Its file is forbidden by now.
        WorkspaceFailed: The snapshot cannot be read.
    """
    policy = workspace.policy
    snapshot, then = _read(workspace, snapshot_id)
    try:
        with Sandbox(workspace.root, policy.forbidden) as sandbox:
            data = sandbox.read(snapshot.path, limit=policy.max_read_bytes)
        return Compared(snapshot, then, decode_text(data, snapshot.path))
    except PathNotFound:
        return Compared(snapshot, then, None)
    except WorkspaceFailed as failed:
        return Compared(snapshot, then, None, failed.message)


def preview_restore(workspace: Workspace, snapshot_id: str) -> Compared:
    """Return what putting a snapshot back would change, and remember that it was shown.

    Raises:
        WorkspaceFailed: The snapshot cannot be read, or its file not be written.
    """
    compared = compare_with_now(workspace, snapshot_id)
    preview_text(workspace, compared.snapshot.path, compared.then)
    return compared


def restore(*, principal: Principal, workspace: Workspace, snapshot_id: str) -> WriteResult:
    """Write a file as a snapshot has it, once that was previewed; what it is now is kept as well.

    Policy is asked as of `write_to_file`. Audited before and after, so that a write is in the log
    also when the process dies at it.

    Raises:
        PolicyDenied, ConfirmationRequired, Conflict: As `authorize.admit_call` and `use_approval`.
        PolicyViolation: Nobody previewed it in the last 15 minutes.
        WriteConflict: The file has changed since.
        PathDenied: The file is forbidden by now.
        WorkspaceFailed: It cannot be done.
    """
    snapshot, then = _read(workspace, snapshot_id)
    about = {"path": snapshot.path, "snapshotId": snapshot.id}
    use = tool_call_request(
        principal, "write_to_file", about, target_id=workspace.target_id, is_builtin=True
    )
    approval = admit_call(use)
    with transaction.atomic():
        use_approval(approval)
        _record("workspace.restore_begun", principal, workspace, about)
    try:
        done = write_text(workspace, snapshot.path, then, require_preview=True)
    except WorkspaceFailed as failed:
        _record("workspace.restore_failed", principal, workspace, {**about, "code": failed.code})
        raise
    told = {"newSnapshotId": done.snapshot_id, "bytesWritten": done.bytes_written}
    _record("workspace.restored", principal, workspace, about | told)
    return done


def sweep_workspaces() -> None:
    """Finish what writers that died on this machine left under way, in every workspace, and make
    room of what is kept of deleted files.
    """
    folder = settings.CONTINUITY_HOME / "workspaces"
    for state in sorted(folder.iterdir()) if folder.is_dir() else []:
        try:
            sweep_state(state)
            prune_deleted_files(state, _kept_of_deleted())
        except (OSError, WorkspaceFailed) as error:
            told = error.strerror if isinstance(error, OSError) else error.message
            log.warning("a workspace's leftovers stay for now: %s", told)


def _kept_of_deleted() -> DeletedFileLimits:
    policy: WorkspacePolicy = settings.WORKSPACE_POLICY
    return DeletedFileLimits(
        policy.deleted_snapshots,
        policy.deleted_snapshot_bytes,
        policy.deleted_snapshot_days * 86_400,
    )


def _read(workspace: Workspace, snapshot_id: str) -> tuple[Snapshot, str]:
    forbidden = workspace.policy.forbidden
    return snapshots.read_snapshot(workspace.state, snapshot_id, forbidden=forbidden)


def _record(
    action: str, principal: Principal, workspace: Workspace, told: Mapping[str, object]
) -> None:
    with transaction.atomic():
        record(
            AuditEvent(
                action,
                principal.id,
                "target",
                workspace.target_id,
                principal.tenant_id,
                principal.workspace_id,
                told,
            )
        )
