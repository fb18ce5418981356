"""Which folder a call works in: the owner, the lookup order, and the case without a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from decisions.foundation.errors import Conflict, InvalidInput, NotFound
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Workspace
from mcp_server.management.commands.mcp_stdio import choose_folder
from runners.models import ExecutionTarget
from runners.targets.local_folder import LocalFolder, set_local_folder
from runners.targets.targets import Caller, TargetFields, change_target, create_target_row
from runners.targets.workspaces import developer_mode_target, open_workspace
from runners.workspace.errors import PathDenied, PathNotFound, ToolDisabled
from tests.support.workspace.workspace_calls import call_tool


@pytest.fixture
def roots(tmp_path: Path, settings: Any) -> Path:
    """A folder below which workspaces are allowed."""
    settings.WORKSPACE_ROOTS = (tmp_path / "roots",)
    settings.WORKSPACE = None
    (tmp_path / "roots").mkdir()
    return tmp_path / "roots"


@pytest.fixture
def command_line() -> Iterator[None]:
    """Reset the folder of this process after the test."""
    yield
    set_local_folder(None)


def make_folder(parent: Path, name: str) -> str:
    """Make a folder and return its path."""
    (parent / name).mkdir()
    return str(parent / name)


def target_fields(principal: Principal, root: str, **more: Any) -> TargetFields:
    """Return the fields of a target in the caller's workspace."""
    scope = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id} | more
    return TargetFields(name="a", config={"root": root}, **scope)


def test_the_default_of_the_workspace_has_priority_over_the_default_of_the_tenant(
    principal: Principal, roots: Path
) -> None:
    tenant_default = create_target_row(
        target_fields(principal, make_folder(roots, "wide"), workspace_id=None, is_default=True),
        actor="admin:a",
    )
    assert open_workspace(Caller.of(principal)).target_id == tenant_default.id
    workspace_default = create_target_row(
        target_fields(principal, make_folder(roots, "own"), is_default=True), actor="admin:a"
    )
    assert open_workspace(Caller.of(principal)).root == roots / "own"
    assert open_workspace(Caller.of(principal), tenant_default.id).root == roots / "wide"
    assert workspace_default.version == 1


def test_a_target_of_another_workspace_is_not_found(
    principal: Principal, outsider: Principal, roots: Path
) -> None:
    workspace = Workspace.objects.get(id=outsider.workspace_id)
    target = create_target_row(
        target_fields(principal, make_folder(roots, "a"), is_default=True), actor="admin:a"
    )
    with pytest.raises(PathNotFound):
        open_workspace(Caller.of(outsider), target.id)
    with pytest.raises(ToolDisabled):
        open_workspace(Caller.of(outsider))
    assert workspace.tenant_id == principal.tenant_id


def test_a_disabled_workspace_target_is_not_replaced_by_another(
    principal: Principal, roots: Path
) -> None:
    target = create_target_row(
        target_fields(principal, make_folder(roots, "a"), is_default=True), actor="admin:a"
    )
    disabled = target_fields(principal, str(roots / "a"), is_default=True, enabled=False)
    change_target(target.id, disabled, actor="admin:a")
    with pytest.raises(ToolDisabled, match="disabled"):
        open_workspace(Caller.of(principal))


def test_a_folder_on_the_command_line_has_priority(
    principal: Principal, roots: Path, tmp_path: Path, command_line: None
) -> None:
    create_target_row(
        target_fields(principal, make_folder(roots, "a"), is_default=True), actor="admin:a"
    )
    named_folder = Path(make_folder(tmp_path, "named"))
    set_local_folder(LocalFolder(named_folder, is_named=True))
    assert open_workspace(Caller.of(principal)).root == named_folder
    # the process merely started in this folder: the default target is used
    set_local_folder(LocalFolder(named_folder))
    assert open_workspace(Caller.of(principal)).root == roots / "a"


def test_the_local_folder_is_only_for_local_callers(
    principal: Principal,
    remote: Principal,
    outsider: Principal,
    roots: Path,
    tmp_path: Path,
    command_line: None,
) -> None:
    set_local_folder(LocalFolder(Path(make_folder(tmp_path, "named")), is_named=True))
    opened = open_workspace(Caller.of(principal))
    assert open_workspace(Caller.of(principal), opened.target_id).root == opened.root
    for other in (remote, outsider):
        with pytest.raises(ToolDisabled):
            open_workspace(Caller.of(other))
        with pytest.raises(PathNotFound):
            open_workspace(Caller.of(other), opened.target_id)


def test_the_same_folder_has_one_target_and_one_state_directory(
    principal: Principal, tmp_path: Path, command_line: None
) -> None:
    set_local_folder(LocalFolder(tmp_path, is_named=True))
    first, second = (open_workspace(Caller.of(principal)) for _ in range(2))
    assert (first.target_id, first.state) == (second.target_id, second.state)
    assert ExecutionTarget.objects.count() == 1
    assert not first.state.is_relative_to(first.root)


def test_developer_mode_comes_from_the_command_line_or_the_settings(
    principal: Principal, tmp_path: Path, command_line: None, settings: Any
) -> None:
    set_local_folder(LocalFolder(tmp_path, is_named=True, developer=True))
    assert open_workspace(Caller.of(principal)).policy.developer
    set_local_folder(LocalFolder(tmp_path, is_named=True))
    assert not open_workspace(Caller.of(principal)).policy.developer


def test_developer_mode_from_the_command_line_ends_with_its_process(
    principal: Principal, tmp_path: Path, command_line: None
) -> None:
    set_local_folder(LocalFolder(tmp_path, is_named=True, developer=True))
    target_id = open_workspace(Caller.of(principal)).target_id
    for local_folder in (None, LocalFolder(tmp_path / "other", developer=True)):
        set_local_folder(local_folder)
        assert not open_workspace(Caller.of(principal), target_id).policy.developer
    set_local_folder(LocalFolder(tmp_path, is_named=True))
    # The same rule applies to both.
    assert open_workspace(Caller.of(principal)).target_id == target_id


def test_the_data_directory_is_forbidden_inside_the_root(
    principal: Principal, tmp_path: Path, settings: Any, command_line: None
) -> None:
    settings.CONTINUITY_HOME = tmp_path / ".continuity"
    set_local_folder(LocalFolder(tmp_path, is_named=True))
    assert ".continuity" in open_workspace(Caller.of(principal)).policy.forbidden


def test_a_home_of_any_name_is_forbidden_inside_the_root(
    principal: Principal, tmp_path: Path, settings: Any, command_line: None
) -> None:
    settings.CONTINUITY_HOME = tmp_path / "data"
    set_local_folder(LocalFolder(tmp_path, is_named=True))
    workspace = open_workspace(Caller.of(principal))
    (tmp_path / "data" / "keys").write_text("secret")
    with pytest.raises(PathDenied):
        call_tool(workspace, "read_file", {"path": "data/keys"})


@pytest.mark.parametrize("name", ["absent", "n" * 300, "loop"])
def test_an_unreadable_folder_is_refused(
    principal: Principal, roots: Path, command_line: None, name: str
) -> None:
    (roots / "loop").symlink_to("loop")
    set_local_folder(LocalFolder(roots / name, is_named=True, developer=True))
    with pytest.raises(ToolDisabled, match="does not exist"):
        open_workspace(Caller.of(principal))
    with pytest.raises(InvalidInput, match="absolute path"):
        create_target_row(target_fields(principal, str(roots / name)), actor="admin:a")
    assert developer_mode_target(Caller.of(principal)) is None


def test_a_home_or_deleted_working_directory_is_not_chosen(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WORKSPACE = None
    home, link = tmp_path / "home", tmp_path / "link"
    home.mkdir()
    link.symlink_to(home)
    monkeypatch.setenv("HOME", str(link))
    monkeypatch.chdir(home)
    assert choose_folder(None, developer=False).root is None
    deleted = tmp_path / "deleted"
    deleted.mkdir()
    monkeypatch.chdir(deleted)
    assert choose_folder(None, developer=False).root == deleted
    deleted.rmdir()
    found = choose_folder(None, developer=True)
    assert (found.root, "does not exist" in found.why) == (None, True)


@pytest.mark.parametrize("below", ["", "artifacts", "link/artifacts"])
def test_the_home_directory_of_the_server_is_never_a_workspace(
    principal: Principal, tmp_path: Path, settings: Any, command_line: None, below: str
) -> None:
    settings.CONTINUITY_HOME = tmp_path / "home"
    (tmp_path / "home" / "artifacts").mkdir(parents=True)
    (tmp_path / "home" / "link").symlink_to(tmp_path / "home")
    set_local_folder(LocalFolder(tmp_path / "home" / below, is_named=True))
    with pytest.raises(ToolDisabled, match="no longer allowed"):
        open_workspace(Caller.of(principal))


@pytest.mark.parametrize("root", ["", "a", "/", "/etc", "{roots}/absent", "{roots}/link"])
def test_a_root_outside_the_allowed_ones_creates_no_target(
    principal: Principal, roots: Path, root: str
) -> None:
    (roots / "link").symlink_to("/etc")
    with pytest.raises(InvalidInput):
        create_target_row(target_fields(principal, root.format(roots=roots)), actor="admin:a")
    assert not ExecutionTarget.objects.exists()


def test_a_root_that_became_a_link_outside_the_allowed_ones_is_not_opened(
    principal: Principal, roots: Path
) -> None:
    target = create_target_row(target_fields(principal, make_folder(roots, "a")), actor="admin:a")
    (roots / "a").rmdir()
    (roots / "a").symlink_to("/etc")
    with pytest.raises(ToolDisabled, match="no longer allowed"):
        open_workspace(Caller.of(principal), target.id)


def test_a_workspace_has_one_default_target(principal: Principal, roots: Path) -> None:
    first = create_target_row(
        target_fields(principal, make_folder(roots, "a"), is_default=True), actor="admin:a"
    )
    with pytest.raises(Conflict) as refused:
        create_target_row(
            target_fields(principal, make_folder(roots, "b"), is_default=True), actor="admin:a"
        )
    assert refused.value.details == {"targetId": first.id}
    assert ExecutionTarget.objects.count() == 1


def test_a_tenant_has_one_default_target(principal: Principal, roots: Path) -> None:
    for name in ("a", "b"):
        make_folder(roots, name)
    shared = target_fields(principal, str(roots / "a"), workspace_id=None, is_default=True)
    first = create_target_row(shared, actor="admin:a")
    second = target_fields(principal, str(roots / "b"), workspace_id=None, is_default=True)
    with pytest.raises(Conflict) as refused:
        create_target_row(second, actor="admin:a")
    assert refused.value.details == {"targetId": first.id}


@pytest.mark.parametrize(
    ("columns", "constraint"),
    [
        pytest.param({"kind": "toaster"}, "target_kind_known", id="unknown kind"),
        pytest.param(
            {"is_local": True, "is_default": True}, "target_local_is_a_folder", id="local default"
        ),
        pytest.param(
            {"is_local": True, "workspace_id": None},
            "target_local_is_a_folder",
            id="local of all workspaces",
        ),
    ],
)
def test_the_database_refuses_a_target(
    principal: Principal, columns: dict[str, Any], constraint: str
) -> None:
    fields = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id}
    fields |= {"kind": "workspace", "name": "a"}
    ExecutionTarget.objects.create(**fields)
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        ExecutionTarget.objects.create(**{**fields, **columns})


def test_a_change_raises_the_version_and_audits_the_previous_values(
    principal: Principal, roots: Path
) -> None:
    target = create_target_row(target_fields(principal, make_folder(roots, "a")), actor="admin:a")
    moved = target_fields(principal, make_folder(roots, "b"))
    assert change_target(target.id, moved, actor="admin:b", if_version=1).version == 2
    with pytest.raises(Conflict):
        change_target(target.id, moved, actor="admin:c", if_version=1)
    metadata = AuditEntry.objects.get(action="target.changed").metadata
    assert (metadata["before"]["config"]["root"], metadata["version"]) == (str(roots / "a"), 2)


def test_the_target_of_the_local_folder_cannot_be_changed(
    principal: Principal, roots: Path, tmp_path: Path, command_line: None
) -> None:
    set_local_folder(LocalFolder(tmp_path, is_named=True))
    target_id = open_workspace(Caller.of(principal)).target_id
    with pytest.raises(NotFound):
        change_target(target_id, target_fields(principal, make_folder(roots, "a")), actor="admin:a")
