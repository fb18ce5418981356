"""The files that a run may upload to a page: artifacts of its own task, or that its workspace got
without a run, and files of the agent's project folder that its tool `read_file` may read.
"""

from __future__ import annotations

from artifacts.models import Artifact
from artifacts.selectors import is_expired, open_bytes
from decisions.authorization.policy import current_policy
from decisions.foundation.errors import Refused
from decisions.identity.authority import caller_behind, seen_by
from decisions.identity.principals import as_trust
from runners.errors import InvalidTarget
from runners.targets.workspaces import check_may_use, open_workspace
from runners.tools.registry import get_tool
from runners.workspace.files.sandbox import Sandbox
from runners.workspace.hints import READ_HINTS, add_hints
from runs.calls.request import caller_of
from runs.models import Run

READ_FILE = "read_file"


def read_upload(
    run: Run, *, artifact_id: str | None, path: str | None, limit: int
) -> tuple[str, bytes]:
    """Return name and content of an artifact, or of a file in the agent's folder.

    Raises:
        ToolFailed: There is none that this run may read, or it has more than `limit` bytes.
    """
    if artifact_id is not None:
        return _read_artifact(run, artifact_id, limit)
    return _read_file(run, path or "", limit)


def _read_artifact(run: Run, artifact_id: str, limit: int) -> tuple[str, bytes]:
    row = Artifact.objects.filter(seen_by(caller_behind(run)), id=artifact_id).first()
    if row is None or is_expired(row) or not _is_of_task(row, run):
        raise InvalidTarget(f"files: there is no artifact {artifact_id[:64]}.")
    if row.size_bytes > limit:
        raise InvalidTarget(
            f"files: {row.name} has {row.size_bytes} bytes; {limit} are left of the limit."
        )
    try:
        with open_bytes(row) as file:
            return row.name, bytes(file.read())
    except Refused as lost:
        raise InvalidTarget(f"files: {lost.message}") from None


def _is_of_task(row: Artifact, run: Run) -> bool:
    """Return whether a run of the same task stored an artifact, or a caller without a run."""
    if not row.run_id or row.run_id == run.id:
        return True
    if run.task_id is None:
        return False
    return Run.objects.filter(id=row.run_id, task_id=run.task_id).exists()


def _read_file(run: Run, path: str, limit: int) -> tuple[str, bytes]:
    target_id, tool = run.inputs.get("targetId"), get_tool(READ_FILE)
    if tool is None or READ_FILE not in run.inputs.get("tools", ()):
        raise InvalidTarget("files: this run may read no files of a project; give an artifactId.")
    policy = current_policy(run)
    if policy.evaluate(READ_FILE, target_id, is_builtin=True).decision != "allow":
        raise InvalidTarget(
            f"files: policy does not allow {READ_FILE} without a confirmation, so no file of the"
            " project can be uploaded."
        )
    workspace = open_workspace(caller_of(run), target_id, tool=READ_FILE)
    check_may_use(tool, workspace, trust=as_trust(run.trust))
    with (
        add_hints(workspace, READ_HINTS),
        Sandbox(workspace.root, workspace.policy.forbidden) as sandbox,
    ):
        name = sandbox.normalize_path(path)
        return name.rpartition("/")[2], sandbox.read(path, limit=limit)
