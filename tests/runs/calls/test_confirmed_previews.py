"""A confirmed call has the effect that its preview showed, or none: over REST and in a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings

from decisions.authorization.decision_pages import as_text, decision_page
from decisions.authorization.genuine_answers import Answer, answer_mac
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import Principal
from decisions.models import Confirmation, Decision
from runners.workspace import call_context
from runners.workspace.tools import execute_command, replace_in_file, write_to_file
from runs.models import Run
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.decisions.confirmations import confirm, decision_id

SCENE = "game/scene/start.txt"
OVERWRITE = {"path": SCENE, "content": "changeBg:a.png;\n", "dryRun": False}
REPLACE = {"path": SCENE, "find": "none", "replace": "x"}
BUILD = {"scriptName": "build"}
Change = Callable[[], None]


@pytest.fixture
def change(project: Path, settings: Any, developer: None) -> Change:
    """Write a harmless script; return the function that changes script and scene."""
    policy = settings.WORKSPACE_POLICY
    settings.WORKSPACE_POLICY = replace(policy, write_requires_diff=False)
    package = project / "package.json"
    package.write_text(json.dumps({"scripts": {"build": "echo hello"}}))

    def make() -> None:
        package.write_text(json.dumps({"scripts": {"prebuild": "touch evil", "build": "echo"}}))
        (project / SCENE).write_text("none;\nother\n")

    return make


def post(api: httpx.Client, tool: str, args: dict[str, Any]) -> httpx.Response:
    if not Decision.objects.exists():
        create_rule(RuleFields("confirm", tool=tool, reason="risky"), actor="test")
    return api.post(f"/api/v1/tools/{tool}/call", json={"args": args, "idempotencyKey": "k"})


def is_unchanged(project: Path) -> bool:
    return (project / SCENE).read_text() == "none;\nother\n" and not (project / "evil").exists()


CALLS = pytest.mark.parametrize(
    ("tool", "args"),
    [("execute_command", BUILD), ("write_to_file", OVERWRITE), ("replace_in_file", REPLACE)],
    ids=["script", "write", "replace"],
)


@CALLS
def test_a_changed_preview_needs_a_new_confirmation(
    api: httpx.Client, project: Path, change: Change, tool: str, args: dict[str, Any]
) -> None:
    number = post(api, tool, args).json()["error"]["details"]["decisionId"]
    confirm(decision_id=number, by="admin:ann", how="admin")
    change()
    again = post(api, tool, args)
    assert again.status_code == 202, again.text
    assert "has changed since" in again.json()["error"]["message"]
    newer = again.json()["error"]["details"]["decisionId"]
    assert (newer != number, is_unchanged(project)) == (True, True)
    confirm(decision_id=newer, by="admin:ann", how="admin")
    assert post(api, tool, args).status_code == 200
    assert not is_unchanged(project)


@CALLS
def test_a_change_before_the_decision_is_shown_and_cannot_be_confirmed(
    api: httpx.Client, project: Path, change: Change, tool: str, args: dict[str, Any]
) -> None:
    number = post(api, tool, args).json()["error"]["details"]["decisionId"]
    assert decision_page(Decision.objects.get()).digest
    change()
    page = decision_page(Decision.objects.get())
    assert (page.digest, "has changed" in page.change) == ("", True)
    assert post(api, tool, args).json()["error"]["details"]["decisionId"] != number


@CALLS
def test_a_change_after_the_call_started_is_found_by_the_tool(
    api: httpx.Client,
    project: Path,
    change: Change,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    args: dict[str, Any],
) -> None:
    number = post(api, tool, args).json()["error"]["details"]["decisionId"]
    confirm(decision_id=number, by="admin:ann", how="admin")

    def require_workspace(ctx: Any) -> Any:
        change()
        return required(ctx)

    required = call_context.require_workspace
    for module in (execute_command, replace_in_file, write_to_file):
        monkeypatch.setattr(module, "require_workspace", require_workspace)
    failed = post(api, tool, args)
    assert failed.json()["error"]["code"] == "E_CONFLICT", failed.text
    assert is_unchanged(project)


@CALLS
def test_a_confirmed_call_whose_basis_cannot_be_read_needs_a_new_confirmation(
    api: httpx.Client, project: Path, change: Change, tool: str, args: dict[str, Any]
) -> None:
    number = post(api, tool, args).json()["error"]["details"]["decisionId"]
    store_as_older_version(number, arguments=None)
    again = post(api, tool, args)
    assert again.status_code == 202, again.text
    assert "cannot be read" in again.json()["error"]["message"]
    newer = again.json()["error"]["details"]["decisionId"]
    assert newer != number
    confirm(decision_id=newer, by="admin:ann", how="admin")
    assert post(api, tool, args).status_code == 200


@pytest.mark.parametrize("arguments", [None, b"of another key"])
def test_a_run_whose_confirmed_basis_cannot_be_read_waits_for_a_new_confirmation(
    idle_worker: WorkerProcess,
    project: Path,
    principal: Principal,
    change: Change,
    arguments: bytes | None,
) -> None:
    before = (project / SCENE).read_text()
    run_id = submit_replace(principal)
    idle_worker.work()
    first = decision_id(Run.objects.get(id=run_id))
    store_as_older_version(first, arguments=arguments)
    idle_worker.work()
    run = Run.objects.get(id=run_id)
    assert (run.status, run.error) == ("running", None)
    assert (decision_id(run) != first, (project / SCENE).read_text()) == (True, before)
    confirm(decision_id=decision_id(run), by="admin:ann", how="admin")
    idle_worker.work()
    assert Run.objects.get(id=run_id).status == "succeeded"


def submit_replace(principal: Principal) -> str:
    """Submit a run with a call that a rule has confirmed."""
    create_rule(RuleFields("confirm", tool="replace_in_file", reason="risky"), actor="test")
    calls = {"calls": [{"name": "replace_in_file", "args": REPLACE}]}
    options = {"mode": "async"}
    return submit_run(
        principal=principal, template_id="call_tools", inputs=calls, options=options
    ).run_id


def store_as_older_version(number: int, *, arguments: bytes | None) -> None:
    """Confirm a call, and replace its stored arguments by what this version cannot read."""
    confirm(decision_id=number, by="admin:ann", how="admin")
    Decision.objects.filter(pk=number).update(sealed_arguments=arguments)
    confirmation = Confirmation.objects.select_related("decision").get(decision_id=number)
    answer = Answer(
        confirmation.status,
        confirmation.decided_at,
        confirmation.decided_by,
        confirmation.decided_how,
    )
    confirmation.answer_mac = answer_mac(confirmation, answer)
    confirmation.save(update_fields=["answer_mac"])


def test_a_run_whose_confirmed_file_has_changed_waits_for_a_new_confirmation(
    idle_worker: WorkerProcess, project: Path, principal: Principal, change: Change
) -> None:
    run_id = submit_replace(principal)
    idle_worker.work()
    first = decision_id(Run.objects.get(id=run_id))
    confirm(decision_id=first, by="admin:ann", how="admin")
    change()
    idle_worker.work()
    second = decision_id(Run.objects.get(id=run_id))
    assert (second != first, is_unchanged(project)) == (True, True)
    confirm(decision_id=second, by="admin:ann", how="admin")
    idle_worker.work()
    assert Run.objects.get(id=run_id).status == "succeeded"
    assert (project / SCENE).read_text() == "x;\nother\n"


def snapshot_of_scene(api: httpx.Client, content: str) -> str:
    """Overwrite the scene; return the id of the snapshot of what it was."""
    args = {"path": SCENE, "content": content, "dryRun": False}
    response = api.post("/api/v1/tools/write_to_file/call", json={"args": args})
    assert response.status_code == 200, response.text
    snapshot_id: str = response.json()["output"]["snapshotId"]
    return snapshot_id


def test_a_snapshot_is_shown_with_what_writing_it_back_would_change(
    api: httpx.Client, project: Path, change: Change
) -> None:
    (project / SCENE).write_text("first;\nsame;\n")
    args = {"snapshotId": snapshot_of_scene(api, "second;\nsame;\n")}
    assert post(api, "restore_snapshot", args).status_code == 202
    text = as_text(decision_page(Decision.objects.get()))
    digest = hashlib.sha256(b"first;\nsame;\n").hexdigest()
    for part in (f"file: {SCENE}", "size: 13 bytes", digest, "files added: 0"):
        assert part in text
    assert f"files replaced: 1 {SCENE} (14 bytes to 13 bytes)" in text
    for line in ("| -second;", "| +first;"):
        assert line in text
    (project / SCENE).unlink()
    text = as_text(decision_page(Decision.objects.get()))
    assert f"files added: 1 {SCENE} (13 bytes)" in text


def test_an_approved_snapshot_that_was_altered_is_not_returned(
    api: httpx.Client, project: Path, change: Change
) -> None:
    (project / SCENE).write_text("first;\n")
    args = {"snapshotId": snapshot_of_scene(api, "second;\n")}
    number = post(api, "restore_snapshot", args).json()["error"]["details"]["decisionId"]
    confirm(decision_id=number, by="admin:ann", how="admin")
    (meta,) = Path(settings.CONTINUITY_HOME).glob(
        f"workspaces/*/snapshots/{args['snapshotId']}.meta.json"
    )
    meta.write_text(meta.read_text().replace("start.txt", "other.txt"))
    again = post(api, "restore_snapshot", args)
    assert (again.status_code, "has changed since" in again.text) == (202, True), again.text
