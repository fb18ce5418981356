"""What operators who are no superusers may grant to operators and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from decisions.models import AuditEntry

USERS, GROUPS = "/admin/auth/user/", "/admin/auth/group/"
MANAGER = (
    "auth.view_user",
    "auth.add_user",
    "auth.change_user",
    "auth.delete_user",
    "auth.add_group",
    "auth.change_group",
    "auth.delete_group",
    "runs.view_run",
)
ALLOWED = {"username": "ada", "is_active": "on", "is_staff": "on"}


@pytest.fixture
def manager(staff_client: Callable[..., Client]) -> Client:
    """Sign in an operator who manages operators and sees runs."""
    return staff_client(*MANAGER)


def permission(name: str) -> Permission:
    app, _, codename = name.partition(".")
    return Permission.objects.get(content_type__app_label=app, codename=codename)


def names(granted: Iterable[Permission]) -> list[str]:
    return sorted(f"{one.content_type.app_label}.{one.codename}" for one in granted)


def make_group(name: str, *granted: str) -> Group:
    group = Group.objects.create(name=name)
    group.permissions.set([permission(one) for one in granted])
    return group


def save(client: Client, row: User | Group, **fields: Any) -> int:
    """Post the form of a row and return the status code of the answer."""
    path = USERS if isinstance(row, User) else GROUPS
    return client.post(f"{path}{row.pk}/change/", fields).status_code


def last_audit(action: str) -> dict[str, Any]:
    entry = AuditEntry.objects.filter(action=action).order_by("id").last()
    assert entry is not None
    return dict(entry.metadata)


def test_an_operator_cannot_become_superuser(manager: Client) -> None:
    me = User.objects.get(username="staff-0")
    mine = [str(one.pk) for one in me.user_permissions.all()]
    fields = {**ALLOWED, "username": me.username, "user_permissions": mine}
    assert save(manager, me, **fields, is_superuser="on") == 302
    me.refresh_from_db()
    assert not me.is_superuser


@pytest.mark.parametrize("is_active", [True, False])
def test_a_superuser_is_not_changed_or_deleted_by_others(manager: Client, is_active: bool) -> None:
    boss = User.objects.create_superuser("boss", is_active=is_active)
    assert save(manager, boss, username="eve", is_active="on") == 403
    password = {"password1": "correct horse 9", "password2": "correct horse 9"}
    path = f"{USERS}{boss.pk}/"
    posted = {"usable_password": "true", "set-password": "", **password}
    assert manager.post(f"{path}password/", posted).status_code == 403
    assert manager.post(f"{path}delete/", {"post": "yes"}).status_code == 403
    assert manager.get(f"{path}change/").status_code == 200
    boss.refresh_from_db()
    assert (boss.username, boss.has_usable_password()) == ("boss", False)


@pytest.mark.parametrize("is_active", [True, False])
@pytest.mark.parametrize("by_group", [True, False])
def test_an_operator_with_more_permissions_is_not_changed(
    manager: Client, by_group: bool, is_active: bool
) -> None:
    ada = User.objects.create_user("ada", is_active=is_active)
    if by_group:
        ada.groups.add(make_group("policy", "decisions.change_policyrule"))
    else:
        ada.user_permissions.add(permission("decisions.change_policyrule"))
    assert save(manager, ada, **ALLOWED | {"username": "eve"}) == 403
    assert User.objects.filter(username="ada").exists()


def test_an_operator_grants_only_permissions_of_their_own(manager: Client) -> None:
    ada = User.objects.create_user("ada")
    own, other = permission("runs.view_run"), permission("runs.change_run")
    assert save(manager, ada, **ALLOWED, user_permissions=[own.pk, other.pk]) == 200
    assert names(ada.user_permissions.all()) == []
    assert save(manager, ada, **ALLOWED, user_permissions=[own.pk]) == 302
    assert names(ada.user_permissions.all()) == ["runs.view_run"]


def test_an_operator_adds_others_only_to_groups_whose_permissions_they_have(
    manager: Client,
) -> None:
    ada = User.objects.create_user("ada")
    readers = make_group("readers", "runs.view_run")
    policy = make_group("policy", "runs.view_run", "decisions.change_policyrule")
    assert save(manager, ada, **ALLOWED, groups=[readers.pk, policy.pk]) == 200
    assert not ada.groups.exists()
    assert save(manager, ada, **ALLOWED, groups=[readers.pk]) == 302
    assert list(ada.groups.all()) == [readers]


def test_a_group_gets_only_permissions_of_the_operator(manager: Client) -> None:
    own, other = permission("runs.view_run"), permission("decisions.change_policyrule")
    created = {"name": "team", "permissions": [own.pk, other.pk]}
    assert manager.post(f"{GROUPS}add/", created).status_code == 200
    assert not Group.objects.exists()
    assert (
        manager.post(f"{GROUPS}add/", {"name": "team", "permissions": [own.pk]}).status_code == 302
    )
    group = Group.objects.get(name="team")
    assert names(group.permissions.all()) == ["runs.view_run"]
    assert save(manager, group, **created) == 200
    assert names(group.permissions.all()) == ["runs.view_run"]


def test_a_group_with_more_permissions_is_not_changed_or_deleted(manager: Client) -> None:
    group = make_group("policy", "decisions.change_policyrule")
    assert save(manager, group, name="mine") == 403
    assert manager.post(f"{GROUPS}{group.pk}/delete/", {"post": "yes"}).status_code == 403
    assert Group.objects.filter(name="policy").exists()


def test_the_audit_log_names_what_was_granted(superuser_client: Client) -> None:
    ada, readers = User.objects.create_user("ada"), make_group("readers", "runs.view_run")
    rule, token = permission("decisions.change_policyrule"), permission("decisions.view_token")
    fields = {"groups": [readers.pk], "user_permissions": [rule.pk, token.pk]}
    save(superuser_client, ada, **ALLOWED, **fields, is_superuser="on")
    granted = ["is_staff", "is_superuser", "group:readers", names([rule])[0], names([token])[0]]
    assert last_audit("operator.changed")["granted"] == granted
    save(superuser_client, ada, **ALLOWED, user_permissions=[rule.pk])
    changed = last_audit("operator.changed")
    assert changed["withdrawn"] == ["is_superuser", "group:readers", "decisions.view_token"]
    assert "granted" not in changed


def test_the_audit_log_names_the_permissions_of_a_group(superuser_client: Client) -> None:
    posted = {"name": "team", "permissions": [permission("runs.view_run").pk]}
    superuser_client.post(f"{GROUPS}add/", posted)
    assert last_audit("operator_group.created")["granted"] == ["runs.view_run"]
    superuser_client.post(f"{GROUPS}{Group.objects.get().pk}/change/", {"name": "team"})
    assert last_audit("operator_group.changed")["withdrawn"] == ["runs.view_run"]
