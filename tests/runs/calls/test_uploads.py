"""The files that an agent may upload: artifacts of its workspace, files that read_file may read."""

from __future__ import annotations

from pathlib import Path

import pytest

from artifacts.services import artifact_rows, store_blob
from decisions.authorization.policy_rules import RuleFields, create_rule
from runners.errors import ToolFailed
from runs.calls.uploads import read_upload
from runs.models import Run
from tests.support.agent.agent_goals import SubmitGoal

LIMIT = 25 * 1024 * 1024


@pytest.fixture
def run(submit_goal: SubmitGoal) -> Run:
    """Return an agent's run with a project folder."""
    return Run.objects.get(id=submit_goal())


def stored_artifact(run: Run, *, workspace_id: str, run_id: str) -> str:
    """Store an artifact of a run in a workspace, and return its id."""
    blob = store_blob(b"bill", name="bill.csv", mime_type="text/csv")
    (row,) = artifact_rows([(blob, None)], owner=run, run_id=run_id)
    row.workspace_id = workspace_id
    row.save()
    return row.id


def refusal(run: Run, *, limit: int = LIMIT, **source: str) -> str:
    """Read a file that must be refused, and return the message."""
    names = {"artifact_id": None, "path": None, **source}
    with pytest.raises(ToolFailed) as caught:
        read_upload(run, limit=limit, **names)
    return caught.value.message


def test_an_artifact_of_the_run_is_read_and_one_of_another_workspace_is_not(run: Run) -> None:
    own = stored_artifact(run, workspace_id=run.workspace_id, run_id=run.id)
    assert read_upload(run, artifact_id=own, path=None, limit=4) == ("bill.csv", b"bill")
    assert "has 4 bytes" in refusal(run, artifact_id=own, limit=3)
    foreign = stored_artifact(run, workspace_id="ws_other", run_id=run.id)
    assert refusal(run, artifact_id=foreign) == f"files: there is no artifact {foreign}."


def test_an_artifact_of_another_run_is_read_only_if_that_is_of_the_same_task(
    run: Run, submit_goal: SubmitGoal
) -> None:
    other = Run.objects.get(id=submit_goal())
    artifact_id = stored_artifact(run, workspace_id=run.workspace_id, run_id=other.id)
    assert refusal(run, artifact_id=artifact_id) == f"files: there is no artifact {artifact_id}."
    Run.objects.filter(id__in=[run.id, other.id]).update(task_id="task_1")
    run.refresh_from_db()
    assert read_upload(run, artifact_id=artifact_id, path=None, limit=4)[1] == b"bill"


def test_a_file_of_the_project_is_read_as_read_file_reads_it(run: Run, project: Path) -> None:
    (project / "scan.pdf").write_bytes(b"%PDF-\0")
    (project / ".env").write_text("KEY=1")
    (project / "link").symlink_to("/etc/passwd")
    assert read_upload(run, artifact_id=None, path="scan.pdf", limit=LIMIT) == (
        "scan.pdf",
        b"%PDF-\0",
    )
    for path in (".env", "link", "../x", "/etc/passwd", "missing.txt"):
        assert refusal(run, path=path)
    assert "more than 3 bytes" in refusal(run, path="scan.pdf", limit=3)


def test_no_file_is_read_for_a_run_without_read_file_or_where_policy_asks_for_it(
    run: Run, submit_goal: SubmitGoal
) -> None:
    path = "game/scene/start.txt"
    without = Run.objects.get(id=submit_goal(tools=["list_files", "browser_upload"]))
    assert "may read no files" in refusal(without, path=path)
    assert read_upload(run, artifact_id=None, path=path, limit=LIMIT)[0] == "start.txt"
    fields = RuleFields("confirm", tool="read_file", reason="test")
    create_rule(fields, actor="test")
    assert "policy does not allow read_file" in refusal(run, path=path)
