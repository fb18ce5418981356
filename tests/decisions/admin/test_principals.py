"""Tenants, workspaces and users are created in the admin site, each audited, and never changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Tenant, User, Workspace

ADMIN = "/admin/decisions/"


def test_a_tenant_its_workspace_and_its_user_are_created(superuser_client: Client) -> None:
    superuser_client.post(f"{ADMIN}tenant/add/", {"name": "acme"})
    tenant = Tenant.objects.get(name="acme")
    superuser_client.post(f"{ADMIN}workspace/add/", {"tenant": tenant.id, "name": "research"})
    workspace = Workspace.objects.get(tenant=tenant)
    superuser_client.post(f"{ADMIN}user/add/", {"workspace": workspace.id, "user_id": "ann"})
    assert User.objects.get(workspace=workspace).user_id == "ann"
    entries = AuditEntry.objects.filter(actor="admin:boss", action__endswith=".created")
    assert [(row.resource_type, row.resource_id) for row in entries.order_by("id")] == [
        ("tenant", tenant.id),
        ("workspace", workspace.id),
        ("user", "ann"),
    ]
    assert entries.get(resource_type="user").workspace_id == workspace.id


@pytest.mark.parametrize("name", ["", "   ", "x" * 129, "a\u202eb", "local"])
def test_an_invalid_or_duplicate_name_creates_nothing(superuser_client: Client, name: str) -> None:
    response = superuser_client.post(f"{ADMIN}tenant/add/", {"name": name})
    assert response.status_code == 200
    assert Tenant.objects.count() == 1
    assert not AuditEntry.objects.filter(action="tenant.created").exists()


@pytest.mark.parametrize("user_id", ["", "Alice Smith", "a/b", ".x", "a\u202eb"])
def test_a_user_id_that_no_call_can_name_creates_no_user(
    superuser_client: Client, principal: Principal, user_id: str
) -> None:
    form = {"workspace": principal.workspace_id, "user_id": user_id}
    assert superuser_client.post(f"{ADMIN}user/add/", form).status_code == 200
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("model", "fields"),
    [("tenant", {"name": "x"}), ("workspace", {"name": "x"}), ("user", {"user_id": "x"})],
)
def test_creating_a_row_needs_its_permission(
    staff_client: Callable[..., Client], model: str, fields: dict[str, Any], principal: Principal
) -> None:
    viewer = staff_client(f"decisions.view_{model}")
    assert viewer.post(f"{ADMIN}{model}/add/", fields).status_code == 403
    assert f"{model}/add/" not in viewer.get(f"{ADMIN}{model}/").content.decode()


def test_an_existing_row_is_not_changed(superuser_client: Client, principal: Principal) -> None:
    page = f"{ADMIN}tenant/{principal.tenant_id}/change/"
    assert superuser_client.post(page, {"name": "renamed"}).status_code == 403
    assert Tenant.objects.get().name == "local"
