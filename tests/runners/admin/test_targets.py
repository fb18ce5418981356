"""Targets in the admin site: created and changed by operators with the permission, with history."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from decisions.foundation.security.sealed_columns import seal_column
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runners.models import ExecutionTarget
from runners.targets.targets import Caller
from runners.targets.workspaces import open_workspace

LIST = "/admin/runners/executiontarget/"


@pytest.fixture
def form_data(principal: Principal, tmp_path: Path, settings: Any) -> dict[str, Any]:
    """Return the form data of a folder that may be a target."""
    settings.WORKSPACE_ROOTS, settings.WORKSPACE = (tmp_path,), None
    (tmp_path / "game").mkdir()
    workspace = f"{principal.tenant_id}|{principal.workspace_id}"
    return {
        "name": "game",
        "workspace": workspace,
        "root": str(tmp_path / "game"),
        "is_default": "on",
        "enabled": "on",
    }


def test_a_folder_created_here_is_used_from_the_next_call_on(
    superuser_client: Client, form_data: dict[str, Any], principal: Principal, tmp_path: Path
) -> None:
    superuser_client.post(LIST + "new/", form_data)
    assert open_workspace(Caller.of(principal)).root == tmp_path / "game"
    assert AuditEntry.objects.get(action="target.created").actor == "admin:boss"
    page = superuser_client.get(LIST).content.decode()
    assert "New project workspace" in page
    assert str(tmp_path / "game") in page


def test_a_change_is_a_version_and_the_page_shows_the_previous_one(
    superuser_client: Client, form_data: dict[str, Any], tmp_path: Path
) -> None:
    superuser_client.post(LIST + "new/", form_data)
    target = ExecutionTarget.objects.get()
    (tmp_path / "moved").mkdir()
    change = {**form_data, "root": str(tmp_path / "moved"), "version": 1}
    superuser_client.post(f"{LIST}{target.id}/edit/", change)
    page = superuser_client.get(f"{LIST}{target.id}/change/").content.decode()
    assert ExecutionTarget.objects.get().version == 2
    assert page.count(str(tmp_path / "game") + "<") == 1
    assert str(tmp_path / "moved") in page
    again = superuser_client.post(f"{LIST}{target.id}/edit/", change)  # a stale page
    assert "The target was changed meanwhile" in again.content.decode()


@pytest.mark.parametrize("root", ["/etc", "game", "", "{there}/absent"])
def test_a_forbidden_folder_is_rejected_in_the_form(
    superuser_client: Client, form_data: dict[str, Any], root: str, tmp_path: Path
) -> None:
    response = superuser_client.post(
        LIST + "new/", {**form_data, "root": root.format(there=tmp_path)}
    )
    assert "cty-error" in response.content.decode()
    assert not ExecutionTarget.objects.exists()


def test_a_second_default_is_rejected_with_the_name_of_the_first(
    superuser_client: Client, form_data: dict[str, Any]
) -> None:
    superuser_client.post(LIST + "new/", form_data)
    response = superuser_client.post(LIST + "new/", {**form_data, "name": "other"})
    assert "The default target is game" in response.content.decode()


def test_adding_and_changing_are_separate_permissions(
    superuser_client: Client, staff_client: Callable[..., Client], form_data: dict[str, Any]
) -> None:
    superuser_client.post(LIST + "new/", form_data)
    target = ExecutionTarget.objects.get()
    reader = staff_client("runners.view_executiontarget")
    assert "New project workspace" not in reader.get(LIST).content.decode()
    for page in (f"{LIST}new/", f"{LIST}{target.id}/edit/"):
        assert reader.post(page, form_data).status_code == 403
    changer = staff_client("runners.view_executiontarget", "runners.change_executiontarget")
    assert changer.get(f"{LIST}{target.id}/edit/").status_code == 200
    assert changer.get(f"{LIST}new/").status_code == 403


def test_the_token_of_a_runner_is_displayed_nowhere(
    superuser_client: Client, principal: Principal
) -> None:
    target = ExecutionTarget(
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        kind="docker-runner",
        name="runner",
        endpoint="http://127.0.0.1:18081/execute",
    )
    sealed = seal_column(target, "sealed_auth_token", b"canary-of-a-runner")
    target.sealed_auth_token = sealed
    target.save(force_insert=True)
    for path in (LIST, f"{LIST}{target.id}/change/"):
        response = superuser_client.get(path)
        page = response.content.decode()
        assert response.status_code == 200
        assert "runner" in page
        assert "canary-of-a-runner" not in page
        assert str(sealed)[2:-1] not in page
        assert sealed.hex() not in page
