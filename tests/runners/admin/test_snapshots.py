"""Snapshots in the admin site: listed, compared with the file, restored after a preview."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.test import Client

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.models import AuditEntry
from runners.models import ExecutionTarget
from runners.targets import snapshots
from runners.targets.snapshots import sweep_workspaces
from runners.workspace.workspace import ProjectWorkspace
from runners.workspace.writing.snapshots import iter_snapshots, list_snapshots, read_snapshot
from runners.workspace.writing.write_text import write_text
from tests.support.workspace.workspace_calls import SCENE, SCENE_TEXT

LIST = "/admin/runners/executiontarget/"


def address_of(folder_target: ExecutionTarget, *rest: str) -> str:
    """Return the address of a folder's snapshots, or of a page below."""
    return "/".join([f"{LIST}{folder_target.id}/snapshots", *rest, ""])


def test_the_targets_link_to_their_snapshots(
    superuser_client: Client, folder_target: ExecutionTarget
) -> None:
    assert "My game" in superuser_client.get(LIST, {"kind": "workspace"}).content.decode()
    assert (
        address_of(folder_target)
        in superuser_client.get(f"{LIST}{folder_target.id}/change/").content.decode()
    )
    assert (
        "No file was changed here yet"
        in superuser_client.get(address_of(folder_target)).content.decode()
    )


def test_snapshots_are_filtered_by_path_prefix(
    superuser_client: Client, folder_target: ExecutionTarget, written_workspace: ProjectWorkspace
) -> None:
    write_text(written_workspace, "other.txt", "x")
    listed = superuser_client.get(address_of(folder_target)).content.decode()
    assert all(one.id in listed for one in list_snapshots(written_workspace.state))
    assert "k-1" in listed
    scenes = superuser_client.get(address_of(folder_target), {"path": "game/"}).content.decode()
    assert (scenes.count(SCENE), "other.txt" in scenes) == (2, False)
    assert (
        "No snapshot has a path"
        in superuser_client.get(address_of(folder_target), {"path": "\0'"}).content.decode()
    )


def test_a_snapshot_is_displayed_beside_the_current_file(
    superuser_client: Client, folder_target: ExecutionTarget, written_workspace: ProjectWorkspace
) -> None:
    newest = list_snapshots(written_workspace.state)[0]
    page = superuser_client.get(address_of(folder_target, newest.id))
    kinds = [row.kind for row in page.context["rows"]]
    assert (kinds.count("changed"), kinds.count("removed"), kinds.count("added")) == (1, 1, 1)
    assert "<mark> 5 </mark>" in page.content.decode()
    assert "Restore…" in page.content.decode()


def test_it_is_restored_after_a_preview_and_the_previous_content_is_stored(
    superuser_client: Client, folder_target: ExecutionTarget, written_workspace: ProjectWorkspace
) -> None:
    before, newest = (
        (written_workspace.root / SCENE).read_text(),
        list_snapshots(written_workspace.state)[0],
    )
    preview = superuser_client.post(address_of(folder_target, newest.id, "preview"))
    assert "Nothing is written yet" in preview.content.decode()
    assert (written_workspace.root / SCENE).read_text() == before
    response = superuser_client.post(address_of(folder_target, newest.id, "restore"), follow=True)
    assert "There is no difference" in response.content.decode()
    new_snapshot = list_snapshots(written_workspace.state)[0]
    assert (written_workspace.root / SCENE).read_text() == SCENE_TEXT
    assert read_snapshot(written_workspace.state, new_snapshot.id)[1] == before
    started, done = AuditEntry.objects.filter(action__startswith="workspace.").order_by("id")
    assert (started.action, done.action) == ("workspace.restore_begun", "workspace.restored")
    assert {started.actor, done.actor} == {"admin:boss"}
    assert (done.resource_id, done.metadata["newSnapshotId"]) == (folder_target.id, new_snapshot.id)
    assert done.metadata["path"] == SCENE


@pytest.mark.parametrize("changed", [False, True])
def test_without_a_preview_of_the_current_file_nothing_is_written(
    superuser_client: Client,
    folder_target: ExecutionTarget,
    written_workspace: ProjectWorkspace,
    changed: bool,
) -> None:
    newest = list_snapshots(written_workspace.state)[0]
    if changed:
        superuser_client.post(address_of(folder_target, newest.id, "preview"))
        (written_workspace.root / SCENE).write_text("changed by another program")
    before = (written_workspace.root / SCENE).read_text()
    response = superuser_client.post(address_of(folder_target, newest.id, "restore"), follow=True)
    assert "Not restored" in response.content.decode()
    assert (written_workspace.root / SCENE).read_text() == before
    failed = AuditEntry.objects.get(action="workspace.restore_failed")
    assert failed.metadata["code"] == ("E_CONFLICT" if changed else "E_POLICY_VIOLATION")


@pytest.mark.parametrize("decision", ["deny", "confirm"])
def test_policy_can_deny_a_restore_and_an_operator_needs_no_confirmation(
    superuser_client: Client,
    folder_target: ExecutionTarget,
    written_workspace: ProjectWorkspace,
    decision: str,
) -> None:
    create_rule(RuleFields(decision, tool="write_to_file", reason="frozen"), actor="test")
    newest, before = (
        list_snapshots(written_workspace.state)[0],
        (written_workspace.root / SCENE).read_text(),
    )
    superuser_client.post(address_of(folder_target, newest.id, "preview"))
    text = superuser_client.post(
        address_of(folder_target, newest.id, "restore"), follow=True
    ).content.decode()
    denied = decision == "deny"
    assert ("Not restored" in text, "frozen" in text) == (denied, denied)
    assert ((written_workspace.root / SCENE).read_text() == before) is denied
    assert AuditEntry.objects.filter(action="policy.denied").exists() is denied
    assert AuditEntry.objects.filter(action="workspace.restore_begun").exists() is not denied


def test_a_deleted_file_is_restored_and_a_file_that_did_not_exist_becomes_empty(
    superuser_client: Client, folder_target: ExecutionTarget, written_workspace: ProjectWorkspace
) -> None:
    newest, oldest = list_snapshots(written_workspace.state)
    (written_workspace.root / SCENE).unlink()
    assert (
        "no longer exists"
        in superuser_client.get(address_of(folder_target, newest.id)).content.decode()
    )
    for one, content in ((newest, SCENE_TEXT), (oldest, "")):
        superuser_client.post(address_of(folder_target, one.id, "preview"))
        superuser_client.post(address_of(folder_target, one.id, "restore"))
        assert (written_workspace.root / SCENE).read_text() == content


def test_a_file_that_is_no_longer_text_cannot_be_compared_or_overwritten(
    superuser_client: Client, folder_target: ExecutionTarget, written_workspace: ProjectWorkspace
) -> None:
    newest = list_snapshots(written_workspace.state)[0]
    (written_workspace.root / SCENE).write_bytes(b"\x89PNG\0")
    page = superuser_client.get(address_of(folder_target, newest.id)).content.decode()
    assert "cannot be shown" in page
    assert "Restore…" not in page
    response = superuser_client.post(address_of(folder_target, newest.id, "preview"), follow=True)
    assert "Not restored" in response.content.decode()
    assert (written_workspace.root / SCENE).read_bytes() == b"\x89PNG\0"


def test_where_the_file_cannot_be_displayed_no_line_is_marked_as_removed(
    superuser_client: Client, folder_target: ExecutionTarget, written_workspace: ProjectWorkspace
) -> None:
    newest = list_snapshots(written_workspace.state)[0]
    (written_workspace.root / SCENE).write_text("雪乃: 第 1 句;\n", "utf-16")
    page = superuser_client.get(address_of(folder_target, newest.id))
    assert (page.context["rows"], "The texts cannot be compared" in page.content.decode()) == (
        [],
        True,
    )


def test_a_file_that_is_forbidden_meanwhile_is_neither_listed_nor_displayed_nor_restored(
    superuser_client: Client, folder_target: ExecutionTarget, written_workspace: ProjectWorkspace
) -> None:
    newest, before = (
        list_snapshots(written_workspace.state)[0],
        (written_workspace.root / SCENE).read_text(),
    )
    superuser_client.post(address_of(folder_target, newest.id, "preview"))
    narrowed = json.dumps({"policies": {"forbiddenDirs": ["Scene"]}})
    (written_workspace.root / "continuity.workspace.json").write_text(narrowed)
    assert newest.id not in superuser_client.get(address_of(folder_target)).content.decode()
    assert superuser_client.get(address_of(folder_target, newest.id)).status_code == 404
    for action in ("preview", "restore"):
        response = superuser_client.post(address_of(folder_target, newest.id, action), follow=True)
        assert (response.status_code, "forbidden" in response.content.decode()) == (200, True)
        assert "雪乃" not in response.content.decode()
    assert (written_workspace.root / SCENE).read_text() == before


def test_a_missing_folder_is_reported(
    superuser_client: Client, folder_target: ExecutionTarget, written_workspace: ProjectWorkspace
) -> None:
    newest = list_snapshots(written_workspace.state)[0]
    ExecutionTarget.objects.update(enabled=False)
    assert "is disabled" in superuser_client.get(address_of(folder_target)).content.decode()
    assert superuser_client.get(address_of(folder_target, newest.id)).status_code == 404
    response = superuser_client.post(address_of(folder_target, newest.id, "restore"))
    assert (response.status_code, (written_workspace.root / SCENE).exists()) == (302, True)


def test_a_missing_snapshot_is_not_found(
    superuser_client: Client, folder_target: ExecutionTarget
) -> None:
    missing_id = "snap_20251101T093210_ab12cd34"
    for address in (
        address_of(folder_target, missing_id),
        address_of(folder_target, "x"),
        f"{LIST}target_x/snapshots/",
    ):
        assert superuser_client.get(address).status_code == 404, address
    for action in ("preview", "restore"):
        assert (
            superuser_client.get(address_of(folder_target, missing_id, action)).status_code == 405
        )
        assert (
            "Not restored"
            in superuser_client.post(
                address_of(folder_target, missing_id, action), follow=True
            ).content.decode()
        )


def test_viewing_and_restoring_need_their_permissions(
    staff_client: Callable[..., Client],
    folder_target: ExecutionTarget,
    written_workspace: ProjectWorkspace,
) -> None:
    newest, before = (
        list_snapshots(written_workspace.state)[0],
        (written_workspace.root / SCENE).read_text(),
    )
    client_without_permissions, reader = (
        staff_client(),
        staff_client("runners.view_executiontarget"),
    )
    for address in (LIST, address_of(folder_target), address_of(folder_target, newest.id)):
        assert (
            client_without_permissions.get(address).status_code,
            reader.get(address).status_code,
        ) == (403, 200)
    assert "Restore…" not in reader.get(address_of(folder_target, newest.id)).content.decode()
    for action in ("preview", "restore"):
        for client in (client_without_permissions, reader):
            assert client.post(address_of(folder_target, newest.id, action)).status_code == 403
        guarded = Client(enforce_csrf_checks=True)
        guarded.cookies = staff_client(
            "runners.view_executiontarget", "runners.change_executiontarget"
        ).cookies
        assert guarded.post(address_of(folder_target, newest.id, action)).status_code == 403
        assert Client().post(address_of(folder_target, newest.id, action)).status_code == 302
    assert (written_workspace.root / SCENE).read_text() == before
    assert not AuditEntry.objects.filter(action__startswith="workspace.").exists()


def test_the_scheduler_cleans_up_after_crashed_writers(written_workspace: ProjectWorkspace) -> None:
    [lock] = (written_workspace.state / "locks").iterdir()
    lock.write_text("{broken")
    sweep_workspaces()
    assert lock.stat().st_size == 0


def test_the_scheduler_deletes_old_snapshots_of_deleted_files(
    written_workspace: ProjectWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (written_workspace.root / SCENE).unlink()
    (written_workspace.root / "another.txt").write_text("there")
    limits = replace(snapshots.DELETED_FILE_LIMITS, count=1)
    monkeypatch.setattr(snapshots, "DELETED_FILE_LIMITS", limits)
    sweep_workspaces()
    assert len(list(iter_snapshots(written_workspace.state))) == 1
