"""Test that a folder belongs to the target that had it first, and to no target of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from decisions.foundation.errors import Conflict
from decisions.identity.principals import Principal, ensure_workspace
from runners.models import ExecutionTarget
from runners.targets import folder_overlap
from runners.targets.local_folder import LocalFolder, set_local_folder
from runners.targets.roots import RootTaken
from runners.targets.targets import Caller, TargetFields, change_target, create_target_row
from runners.targets.workspaces import open_workspace
from runners.workspace.errors import ToolDisabled
from tests.support.rest.rest import json_of, refusal
from tests.support.rest.rest_fixtures import MakeClient

TARGETS = "/api/v1/targets"


@pytest.fixture
def taken(tmp_path: Path, settings: Any, outsider: Principal) -> Path:
    """A folder that is the root of another workspace's target."""
    settings.WORKSPACE_ROOTS, settings.WORKSPACE = (tmp_path,), None
    folder = tmp_path / "roots" / "taken"
    (folder / "inside").mkdir(parents=True)
    (tmp_path / "free").mkdir()
    create_target_row(fields_of(outsider, folder), actor="admin:a", target_id="target_taken")
    return folder


def fields_of(principal: Principal, root: Path, **more: Any) -> TargetFields:
    scope = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id} | more
    return TargetFields(name="mine", config={"root": str(root)}, **scope)


@pytest.mark.parametrize("root", ["{taken}", "{taken}/inside", "{taken}/..", "{link}"])
def test_a_token_gets_no_target_with_the_folder_of_another_workspace(
    client_with: MakeClient, taken: Path, tmp_path: Path, root: str
) -> None:
    (tmp_path / "link").symlink_to(taken / "inside")
    config = {"root": root.format(taken=taken, link=tmp_path / "link")}
    client = client_with(scopes={"targets:admin", "tools:read"})
    body = {"kind": "workspace", "name": "mine", "config": config}
    error = refusal(client.post(TARGETS, json=body), 409)
    assert "belongs to another workspace" in error["message"]
    assert "target_taken" not in str(error)
    assert ExecutionTarget.objects.count() == 1
    mine = json_of(client.post(TARGETS, json=body | {"config": {"root": f"{tmp_path}/free"}}), 201)
    changed = client.put(f"{TARGETS}/{mine['targetId']}", json={"name": "mine", "config": config})
    assert "target_taken" not in str(refusal(changed, 409))
    assert ExecutionTarget.objects.get(id=mine["targetId"]).version == 1


def test_an_operator_is_told_which_target_has_the_folder(
    principal: Principal, taken: Path, tmp_path: Path
) -> None:
    with pytest.raises(RootTaken, match="target_taken"):
        create_target_row(fields_of(principal, taken / "inside"), actor="admin:a")
    with pytest.raises(CommandError, match="target_taken"):
        call_command("add_target", "--kind=workspace", f'--config={{"root": "{taken}"}}')
    everybody = fields_of(principal, taken.parent, workspace_id=None)
    with pytest.raises(RootTaken):
        create_target_row(everybody, actor="admin:a")
    mine = create_target_row(fields_of(principal, tmp_path / "free"), actor="admin:a")
    with pytest.raises(RootTaken):
        change_target(mine.id, fields_of(principal, taken), actor="admin:a")


def test_a_workspace_may_have_a_folder_of_its_own_or_of_its_whole_tenant_twice(
    principal: Principal, outsider: Principal, tmp_path: Path, settings: Any
) -> None:
    settings.WORKSPACE_ROOTS = (tmp_path,)
    (tmp_path / "inside").mkdir()
    create_target_row(fields_of(principal, tmp_path, workspace_id=None), actor="admin:a")
    for _ in range(2):
        created = create_target_row(fields_of(principal, tmp_path / "inside"), actor="admin:a")
        assert open_workspace(Caller.of(principal), created.id).root == tmp_path / "inside"
    with pytest.raises(Conflict):
        create_target_row(fields_of(outsider, tmp_path / "inside"), actor="admin:a")


def test_a_folder_of_another_tenant_is_taken_too(
    principal: Principal, tmp_path: Path, settings: Any
) -> None:
    settings.WORKSPACE_ROOTS = (tmp_path,)
    other = ensure_workspace("w", "other tenant")
    theirs = {"tenant_id": other.tenant_id, "workspace_id": None}
    create_target_row(fields_of(principal, tmp_path, **theirs), actor="admin:a")
    with pytest.raises(RootTaken):
        create_target_row(fields_of(principal, tmp_path), actor="admin:a")


def test_of_two_targets_older_than_the_rule_the_first_keeps_the_folder(
    principal: Principal, outsider: Principal, taken: Path
) -> None:
    scope = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id}
    mine = ExecutionTarget.objects.create(
        **scope, kind="workspace", name="mine", config={"root": str(taken / "inside")}
    )
    with pytest.raises(ToolDisabled, match="belongs to another workspace"):
        open_workspace(Caller.of(principal), mine.id)
    assert open_workspace(Caller.of(outsider), "target_taken").root == taken
    ExecutionTarget.objects.filter(id="target_taken").update(created_at=timezone.now())
    assert open_workspace(Caller.of(principal), mine.id).root == taken / "inside"
    with pytest.raises(ToolDisabled, match="belongs to another workspace"):
        open_workspace(Caller.of(outsider), "target_taken")


def test_a_root_that_became_a_link_to_the_folder_of_another_workspace_is_not_opened(
    principal: Principal, outsider: Principal, taken: Path, tmp_path: Path
) -> None:
    mine = create_target_row(fields_of(principal, tmp_path / "free"), actor="admin:a")
    (tmp_path / "free").rmdir()
    (tmp_path / "free").symlink_to(taken)
    ExecutionTarget.objects.filter(id="target_taken").update(created_at=timezone.now())
    with pytest.raises(ToolDisabled, match="belongs to another workspace"):
        open_workspace(Caller.of(principal), mine.id)
    assert open_workspace(Caller.of(outsider), "target_taken").root == taken


def test_the_folder_of_a_command_line_belongs_to_its_workspace_until_it_is_deleted(
    client_with: MakeClient,
    principal: Principal,
    outsider: Principal,
    tmp_path: Path,
    settings: Any,
) -> None:
    settings.WORKSPACE_ROOTS = (tmp_path,)
    set_local_folder(LocalFolder(tmp_path, is_named=True))
    try:
        target_id = open_workspace(Caller.of(principal)).target_id
    finally:
        set_local_folder(None)
    with pytest.raises(RootTaken):
        create_target_row(fields_of(outsider, tmp_path), actor="admin:a")
    local = client_with(scopes={"targets:admin", "tools:read"}, trust="local")
    url = f"{TARGETS}/{target_id}"
    refusal(local.put(url, json={"name": "a", "config": {"root": str(tmp_path)}}), 403)
    json_of(local.delete(url))
    create_target_row(fields_of(outsider, tmp_path), actor="admin:a")


def test_a_bind_mount_of_the_folder_of_another_workspace_is_the_same_folder(
    principal: Principal, taken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bound", "holder/bound"):
        (tmp_path / name).mkdir(parents=True)
    mounts = tmp_path / "mountinfo"
    root = f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 8:1 {taken}/inside "
    monkeypatch.setattr(folder_overlap, "MOUNTS", mounts)
    for point, asked in (("bound", "bound"), ("holder/bound", "holder")):
        mounts.write_text(f"{root}{tmp_path}/{point} rw - ext4 /dev/sda rw\n")
        with pytest.raises(RootTaken):
            create_target_row(fields_of(principal, tmp_path / asked), actor="admin:a")
    mounts.write_text(
        f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 8:2 / {tmp_path}/bound rw - ext4 /\n"
    )
    create_target_row(fields_of(principal, tmp_path / "bound"), actor="admin:a")
