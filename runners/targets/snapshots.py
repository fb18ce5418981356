"""Snapshots of workspaces for operators: compare with the current file, restore."""

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
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing import snapshots
from runners.workspace.writing.crash_recovery import sweep_state
from runners.workspace.writing.deleted_files import DeletedFileLimits, prune_deleted_files
from runners.workspace.writing.snapshots import Snapshot
from runners.workspace.writing.write_text import WriteResult, preview_text, write_text

log = logging.getLogger(__name__)
DELETED_FILE_LIMITS = DeletedFileLimits(
    count=1000, size_bytes=256 * 1024 * 1024, seconds=90 * 86_400
)


@dataclass(frozen=True, slots=True)
class SnapshotComparison:
    """A snapshot and the current content of its file.

    Attributes:
        then: the text of the snapshot.
        now: the current text; None if the file does not exist.
        error: why the current file cannot be shown; `now` is None then.
    """

    snapshot: Snapshot
    then: str
    now: str | None
    error: str = ""


def compare_with_now(workspace: ProjectWorkspace, snapshot_id: str) -> SnapshotComparison:
    """Return a snapshot and the current content of its file.

    Raises:
        PathDenied: Policy now forbids the file.
        WorkspaceFailed: The snapshot cannot be read.
    """
    policy = workspace.policy
    snapshot, then = _read(workspace, snapshot_id)
    try:
        with Sandbox(workspace.root, policy.forbidden) as sandbox:
            data = sandbox.read(snapshot.path, limit=policy.max_read_bytes)
        return SnapshotComparison(snapshot, then, decode_text(data, snapshot.path))
    except PathNotFound:
        return SnapshotComparison(snapshot, then, None)
    except WorkspaceFailed as failed:
        return SnapshotComparison(snapshot, then, None, failed.message)


def preview_restore(workspace: ProjectWorkspace, snapshot_id: str) -> SnapshotComparison:
    """Return what restoring a snapshot would change, and record the preview.

    Raises:
        WorkspaceFailed: The snapshot cannot be read, or its file cannot be written.
    """
    compared = compare_with_now(workspace, snapshot_id)
    preview_text(workspace, compared.snapshot.path, compared.then)
    return compared


def restore(*, principal: Principal, workspace: ProjectWorkspace, snapshot_id: str) -> WriteResult:
    """Write the content of a snapshot to its file after a preview; the current content becomes a
    new snapshot.

    Policy is evaluated as for `write_to_file`. The audit log has an event before and after the
    write, so a write is recorded even if the process dies during it.

    Raises:
        PolicyDenied, ConfirmationRequired, Conflict: As `authorize.admit_call` and `use_approval`.
        PolicyViolation: It was not previewed in the last 15 minutes.
        WriteConflict: The file has changed since.
        PathDenied: Policy now forbids the file.
        WorkspaceFailed: The write failed.
    """
    snapshot, then = _read(workspace, snapshot_id)
    subject = {"path": snapshot.path, "snapshotId": snapshot.id}
    request = tool_call_request(
        principal, "write_to_file", subject, target_id=workspace.target_id, is_builtin=True
    )
    approval = admit_call(request)
    with transaction.atomic():
        use_approval(approval)
        _record("workspace.restore_begun", principal, workspace, subject)
    try:
        done = write_text(workspace, snapshot.path, then, require_preview=True)
    except WorkspaceFailed as failed:
        _record("workspace.restore_failed", principal, workspace, {**subject, "code": failed.code})
        raise
    written = {"newSnapshotId": done.snapshot_id, "bytesWritten": done.bytes_written}
    _record("workspace.restored", principal, workspace, subject | written)
    return done


def sweep_workspaces() -> None:
    """Complete or undo the writes of crashed processes in all workspaces, and delete old snapshots
    of deleted files.
    """
    folder = settings.CONTINUITY_HOME / "workspaces"
    for state in sorted(folder.iterdir()) if folder.is_dir() else []:
        try:
            sweep_state(state)
            prune_deleted_files(state, DELETED_FILE_LIMITS)
        except (OSError, WorkspaceFailed) as error:
            reason = error.strerror if isinstance(error, OSError) else error.message
            log.warning("the cleanup of a workspace failed and is tried again later: %s", reason)


def _read(workspace: ProjectWorkspace, snapshot_id: str) -> tuple[Snapshot, str]:
    forbidden = workspace.policy.forbidden
    return snapshots.read_snapshot(workspace.state, snapshot_id, forbidden=forbidden)


def _record(
    action: str, principal: Principal, workspace: ProjectWorkspace, data: Mapping[str, object]
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
                data,
            )
        )
