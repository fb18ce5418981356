"""The one-time login link of the admin site."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from decisions.audit.record import is_genuine
from decisions.foundation.errors import Forbidden
from decisions.identity import one_time_login
from decisions.identity.one_time_login import create_login_path
from decisions.models import AuditEntry, LoginLink
from tests.support.runs.concurrent_calls import at_once

pytestmark = [pytest.mark.usefixtures("principal"), pytest.mark.usefixtures("embedded")]


@pytest.fixture
def embedded() -> Any:
    """Enable links as on an embedded installation, whichever database the tests run on."""
    with override_settings(ONE_TIME_LOGIN=True):
        yield


def test_posting_a_link_signs_in_a_superuser_without_a_password() -> None:
    client = Client()
    answer = client.post(create_login_path())
    assert (answer.status_code, answer["Location"]) == (302, "/admin/")
    assert client.get("/admin/").status_code == 200
    admin = User.objects.get()
    assert admin.is_superuser
    assert not admin.has_usable_password()


def test_a_get_does_not_use_up_a_link() -> None:
    path = create_login_path()
    assert Client().get(path).status_code == 200
    assert Client().post(path).status_code == 302


def test_a_link_works_once() -> None:
    path = create_login_path()
    Client().post(path)
    second = Client()
    assert second.get(path).status_code == 410
    assert second.post(path).status_code == 410
    assert second.get("/admin/").status_code == 302


def test_a_link_expires_after_a_quarter_of_an_hour() -> None:
    path = create_login_path()
    link = LoginLink.objects.get()
    assert link.expires_at - link.created_at == timedelta(minutes=15)
    LoginLink.objects.update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert Client().post(path).status_code == 410


def test_a_guessed_link_signs_no_user_in() -> None:
    create_login_path()
    assert Client().post("/admin/once/" + "A" * 43 + "/").status_code == 410
    assert not User.objects.exists()


def test_the_token_is_not_stored_in_the_database() -> None:
    token = create_login_path().split("/")[-2]
    assert len(token) >= 43  # 256 bits
    assert token not in str(LoginLink.objects.values())
    assert token not in str(list(AuditEntry.objects.values()))


def test_of_several_concurrent_posts_one_is_signed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    path, all_have_looked = create_login_path(), threading.Barrier(4)
    is_spent, has_looked = one_time_login._is_spent, threading.local()

    def is_spent_once_all_have_looked(link: LoginLink) -> bool:
        found = is_spent(link)
        if not hasattr(has_looked, "once"):
            has_looked.once = True
            all_have_looked.wait(20)
        return found

    monkeypatch.setattr(one_time_login, "_is_spent", is_spent_once_all_have_looked)
    answers = at_once([lambda: Client().post(path).status_code] * 4)
    assert sorted(answers) == [302, 410, 410, 410]


def test_a_post_from_another_site_is_refused() -> None:
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(create_login_path()).status_code == 403
    assert LoginLink.objects.get().used_at is None


def test_a_link_does_not_sign_in_an_inactive_account() -> None:
    User.objects.create_superuser("admin", is_active=False)
    assert Client().post(create_login_path()).status_code == 410


def test_a_demoted_account_stays_demoted() -> None:
    User.objects.create_user("admin", is_staff=True)
    assert Client().post(create_login_path()).status_code == 302
    assert not User.objects.get().is_superuser


def test_a_used_link_redirects_the_user_it_signed_in() -> None:
    path, client = create_login_path(), Client()
    client.post(path)
    assert client.get(path)["Location"] == "/admin/"


def test_creation_use_and_refusal_of_a_link_are_audited() -> None:
    path = create_login_path()
    Client().post(path)
    Client().post(path)
    rows = AuditEntry.objects.filter(resource_type__in=["login_link", "operator"])
    entries = list(rows.order_by("id"))
    assert [entry.action for entry in entries] == [
        "login_link.created",
        "login_link.used",
        "operator.signed_in",
        "login_link.refused",
    ]
    assert all(is_genuine(entry) for entry in entries)


@override_settings(ONE_TIME_LOGIN=False)
def test_without_one_time_login_links_are_neither_created_nor_accepted() -> None:
    with pytest.raises(Forbidden, match="createsuperuser"):
        create_login_path()
    with override_settings(ONE_TIME_LOGIN=True):
        path = create_login_path()
    assert Client().post(path).status_code == 410


def test_the_page_has_a_strict_content_security_policy() -> None:
    answer = Client().get(create_login_path())
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'nonce-" in policy
    assert "no-store" in answer["Cache-Control"]


def test_a_failed_sign_in_is_audited_without_the_typed_name() -> None:
    Client().post("/admin/login/", {"username": "hunter2", "password": "wrong"})
    entry = AuditEntry.objects.get(action="operator.sign_in_failed")
    assert "hunter2" not in str((entry.actor, entry.resource_id, entry.metadata))


def test_the_login_page_shows_the_command_for_a_link() -> None:
    assert "manage.py admin_link" in Client().get("/admin/login/").content.decode()
