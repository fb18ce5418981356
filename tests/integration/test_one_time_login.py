"""The one-time way into the admin site."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from decisions.audit.record import is_genuine
from decisions.errors import Forbidden
from decisions.identity.one_time_login import create_login_path
from decisions.models import AuditEntry, LoginLink
from tests.integration.racing import at_once

pytestmark = [pytest.mark.usefixtures("principal"), pytest.mark.usefixtures("embedded")]


@pytest.fixture
def embedded() -> Any:
    """Links as on an embedded installation, whichever database the tests run on."""
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


def test_looking_at_a_link_does_not_use_it_up() -> None:
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


def test_a_link_is_dead_after_a_quarter_of_an_hour() -> None:
    path = create_login_path()
    link = LoginLink.objects.get()
    assert link.expires_at - link.created_at == timedelta(minutes=15)
    LoginLink.objects.update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert Client().post(path).status_code == 410


def test_a_guess_signs_nobody_in() -> None:
    create_login_path()
    assert Client().post("/admin/once/" + "A" * 43 + "/").status_code == 410
    assert not User.objects.exists()


def test_the_database_does_not_know_the_token() -> None:
    token = create_login_path().split("/")[-2]
    assert len(token) >= 43  # 256 bits
    assert token not in str(LoginLink.objects.values())
    assert token not in str(list(AuditEntry.objects.values()))


def test_of_two_at_once_one_is_signed_in() -> None:
    path = create_login_path()
    answers = at_once([lambda: Client().post(path).status_code] * 4)
    assert sorted(answers) == [302, 410, 410, 410]


def test_a_post_from_another_site_is_refused() -> None:
    strict = Client(enforce_csrf_checks=True)
    assert strict.post(create_login_path()).status_code == 403
    assert LoginLink.objects.get().used_at is None


def test_a_closed_account_is_not_opened_by_a_link() -> None:
    User.objects.create_superuser("admin", is_active=False)
    assert Client().post(create_login_path()).status_code == 410


def test_a_demoted_account_stays_demoted() -> None:
    User.objects.create_user("admin", is_staff=True)
    assert Client().post(create_login_path()).status_code == 302
    assert not User.objects.get().is_superuser


def test_a_used_link_leads_whoever_it_signed_in_on() -> None:
    path, client = create_login_path(), Client()
    client.post(path)
    assert client.get(path)["Location"] == "/admin/"


def test_making_and_using_and_refusing_are_audited() -> None:
    path = create_login_path()
    Client().post(path)
    Client().post(path)
    told = AuditEntry.objects.filter(resource_type__in=["login_link", "operator"])
    entries = list(told.order_by("id"))
    assert [entry.action for entry in entries] == [
        "login_link.created",
        "login_link.used",
        "operator.signed_in",
        "login_link.refused",
    ]
    assert all(is_genuine(entry) for entry in entries)


@override_settings(ONE_TIME_LOGIN=False)
def test_a_shared_database_makes_and_takes_no_links() -> None:
    with pytest.raises(Forbidden, match="createsuperuser"):
        create_login_path()
    with override_settings(ONE_TIME_LOGIN=True):
        path = create_login_path()
    assert Client().post(path).status_code == 410


def test_the_page_lets_nothing_else_run() -> None:
    answer = Client().get(create_login_path())
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    assert "no-store" in answer["Cache-Control"]


def test_a_failed_sign_in_is_audited_without_what_was_typed() -> None:
    Client().post("/admin/login/", {"username": "hunter2", "password": "wrong"})
    entry = AuditEntry.objects.get(action="operator.sign_in_failed")
    assert "hunter2" not in str((entry.actor, entry.resource_id, entry.metadata))


def test_the_login_page_tells_the_way_in() -> None:
    assert "manage.py admin_link" in Client().get("/admin/login/").content.decode()
