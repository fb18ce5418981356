"""Headers and cookies that protect pages: media types, frames, scripts, other sites."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from decisions.authorization.confirmation_links import confirmation_link
from decisions.authorization.confirmations import open_confirmation
from decisions.identity.one_time_login import create_login_path
from decisions.identity.principals import Principal
from tests.support.decisions.continuity import create_decision


def test_an_admin_page_is_neither_framed_nor_sniffed(principal: Principal) -> None:
    page = Client().get("/admin/login/")
    assert page["X-Frame-Options"] == "DENY"
    assert page["X-Content-Type-Options"] == "nosniff"


def test_a_page_of_the_admin_runs_scripts_of_this_servers_files_alone(
    superuser_client: Client,
) -> None:
    for page in (Client().get("/admin/login/"), superuser_client.get("/admin/")):
        policy = page["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self' 'unsafe-eval';" in policy
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self'" in policy


@pytest.mark.parametrize("target", ["//evil.example/", "https://evil.example/", "/\\evil.example"])
def test_a_sign_in_with_a_refused_next_ends_on_the_dashboard(
    principal: Principal, target: str
) -> None:
    User.objects.create_superuser("boss", password="a long password")
    form = {"username": "boss", "password": "a long password", "next": target}
    response = Client().post("/admin/login/", form)
    assert (response.status_code, response["Location"]) == (302, "/admin/")


def test_the_page_of_a_confirmation_link_runs_no_script_and_is_not_framed(
    principal: Principal,
) -> None:
    opened = open_confirmation(create_decision(principal, mode="confirm"))
    policy = Client().get(confirmation_link(opened.confirmation))["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


def test_the_page_of_the_api_runs_only_scripts_of_this_server() -> None:
    page = Client().get("/api/docs")
    policy = page["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(rb"<script>|<script [^>]*>[^<]", page.content)
    script = Client().get("/api/docs?script")
    assert script["Content-Type"].startswith("application/javascript")


@override_settings(ONE_TIME_LOGIN=True)
def test_no_script_reads_the_session_cookie_and_no_other_site_sends_it(
    principal: Principal,
) -> None:
    client = Client()
    client.post(create_login_path())
    cookie = client.cookies["continuity_session"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
