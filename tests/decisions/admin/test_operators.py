"""The operators who sign in at the admin site: every change to them is audited."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from decisions.models import AuditEntry

pytestmark = pytest.mark.usefixtures("quick_hashes")
LIST = "/admin/auth/user/"


@pytest.fixture
def quick_hashes(settings: Any) -> None:
    """Hash passwords quickly."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def audit_events() -> list[tuple[str, str]]:
    """Return the audit events about operators, and the operator of each."""
    rows = AuditEntry.objects.filter(resource_type="operator").exclude(action="operator.signed_in")
    return list(rows.order_by("id").values_list("action", "resource_id"))


def test_an_operator_is_added_changed_and_deleted_and_each_event_is_audited(
    superuser_client: Client,
) -> None:
    password = {"password1": "correct horse 9", "password2": "correct horse 9"}
    superuser_client.post(LIST + "add/", {"username": "ada", "usable_password": "true", **password})
    ada = User.objects.get(username="ada")
    superuser_client.post(
        f"{LIST}{ada.pk}/change/", {"username": "ada", "is_active": "on", "is_staff": "on"}
    )
    assert User.objects.get(username="ada").is_staff
    superuser_client.post(f"{LIST}{ada.pk}/delete/", {"post": "yes"})
    assert not User.objects.filter(username="ada").exists()
    verbs = ["operator.created", "operator.changed", "operator.deleted"]
    assert audit_events() == [(verb, "ada") for verb in verbs]
    changed = AuditEntry.objects.get(action="operator.changed")
    assert changed.actor == "admin:boss"
    assert "Staff status" in changed.metadata["fields"]


def test_a_new_password_is_audited_but_not_shown(superuser_client: Client) -> None:
    ada = User.objects.create_user("ada")
    password = {"password1": "correct horse 9", "password2": "correct horse 9"}
    superuser_client.post(
        f"{LIST}{ada.pk}/password/", {"usable_password": "true", "set-password": "", **password}
    )
    assert User.objects.get(username="ada").check_password("correct horse 9")
    assert audit_events() == [("operator.changed", "ada")]
    assert "horse" not in str(list(AuditEntry.objects.values()))


def test_a_change_of_ones_own_password_is_audited_too(superuser_client: Client) -> None:
    me = User.objects.get(username="boss")
    me.set_password("old horse battery")
    me.save()
    client = Client()
    client.force_login(me)
    new = {"new_password1": "correct horse 9", "new_password2": "correct horse 9"}
    client.post("/admin/password_change/", {"old_password": "wrong", **new})
    assert audit_events() == []
    client.post("/admin/password_change/", {"old_password": "old horse battery", **new})
    assert User.objects.get().check_password("correct horse 9")
    assert audit_events() == [("operator.changed", "boss")]


def test_operators_are_not_deleted_in_bulk(superuser_client: Client) -> None:
    User.objects.create_user("ada")
    all_ids = list(User.objects.values_list("pk", flat=True))
    superuser_client.post(
        LIST, {"action": "delete_selected", "_selected_action": all_ids, "post": "yes"}
    )
    assert User.objects.count() == 2


def test_signing_out_is_audited(superuser_client: Client) -> None:
    superuser_client.post("/admin/logout/")
    assert audit_events() == [("operator.signed_out", "admin:boss")]
