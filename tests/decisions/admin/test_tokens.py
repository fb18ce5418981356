"""Tokens in the admin site: created and displayed once, revoked, audited; digests never
displayed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from decisions.foundation.errors import NotAuthenticated
from decisions.identity.principals import authenticate, create_token
from decisions.models import AuditEntry, Token, User

LIST = "/admin/decisions/token/"
FORM: dict[str, Any] = {
    "name": "agent",
    "tenant": "acme",
    "workspace": "research",
    "acts_for": "ada\nbob\n",
    "trust": "remote",
    "scopes": ["runs:read"],
}


def test_a_token_is_displayed_once_and_works(superuser_client: Client) -> None:
    response = superuser_client.post(LIST + "new/", FORM)
    token = Token.objects.get()
    secret = response.context["secret"]
    assert secret in response.content.decode()
    assert "no-store" in response["Cache-Control"]
    principal = authenticate(secret)
    assert principal.acts_for == frozenset({"ada", "bob"})
    assert principal.trust == "remote"
    assert principal.scopes == {"runs:read"}
    for path in (LIST, f"{LIST}{token.id}/change/", "/admin/decisions/auditentry/"):
        page = superuser_client.get(path).content.decode()
        assert secret not in page
        assert token.digest not in page
    assert AuditEntry.objects.get(action="token.created").actor == "admin:boss"


def test_a_token_may_belong_to_a_workspace_of_another_tenant(superuser_client: Client) -> None:
    superuser_client.post(LIST + "new/", FORM)
    workspace = Token.objects.get().workspace
    assert (workspace.name, workspace.tenant.name) == ("research", "acme")


def test_the_users_of_a_token_change_from_its_next_call_on(superuser_client: Client) -> None:
    secret = create_token(name="agent", users=["ada"])
    page = f"{LIST}{Token.objects.get().id}/"
    superuser_client.post(page + "acts_for/", {"acts_for": "bob\n\n  cy \nbob"})
    assert authenticate(secret).acts_for == frozenset({"bob", "cy"})
    entry = AuditEntry.objects.get(action="token.acts_for_changed")
    assert entry.actor == "admin:boss"
    assert entry.metadata == {"name": "agent", "before": ["ada"], "actsFor": ["bob", "cy"]}
    superuser_client.post(page + "acts_for/", {"acts_for": "cy\nbob"})
    assert AuditEntry.objects.filter(action="token.acts_for_changed").count() == 1
    assert ">bob\ncy</textarea>" in superuser_client.get(page + "change/").content.decode()


@pytest.mark.parametrize("wrong", ["x" * 129, "a\0b", "\u202ea", "y" * 10_001])
def test_invalid_users_change_nothing_of_a_token(superuser_client: Client, wrong: str) -> None:
    secret = create_token(name="agent", users=["ada"])
    superuser_client.post(
        f"{LIST}{Token.objects.get().id}/acts_for/", {"acts_for": f"bob\n{wrong}"}
    )
    assert authenticate(secret).acts_for == frozenset({"ada"})
    assert not User.objects.filter(user_id="bob").exists()


def test_a_revoked_token_accepts_no_users(superuser_client: Client) -> None:
    create_token(name="agent", users=["ada"])
    token = Token.objects.get()
    superuser_client.post(f"{LIST}{token.id}/revoke/")
    superuser_client.post(f"{LIST}{token.id}/acts_for/", {"acts_for": "bob"})
    assert Token.objects.get().acts_for == ["ada"]
    assert "acts_for/" not in superuser_client.get(f"{LIST}{token.id}/change/").content.decode()


def test_an_invalid_form_creates_no_token(superuser_client: Client) -> None:
    invalid_forms: list[dict[str, Any]] = [
        {"name": ""},
        {"name": "<svg onload=1>"},
        {"scopes": ["everything"]},
        {"scopes": []},
        {"trust": "total"},
        {"workspace": "a\0b"},
        {"name": "x" * 129},
        {"acts_for": "x" * 129},
        {"acts_for": "a\0b"},
    ]
    for wrong in invalid_forms:
        response = superuser_client.post(LIST + "new/", {**FORM, **wrong})
        assert response.status_code == 200, wrong
        assert "cty-error" in response.content.decode(), wrong
        assert "<svg onload" not in response.content.decode()
    assert not Token.objects.exists()


def test_a_token_gets_the_lifetime_of_the_form_which_suggests_90_days(
    superuser_client: Client,
) -> None:
    assert 'value="90d"' in superuser_client.get(LIST + "new/").content.decode()
    superuser_client.post(LIST + "new/", {**FORM, "lifetime": "12h"})
    token = Token.objects.get()
    assert token.expires_at is not None
    assert timedelta(hours=11) < token.expires_at - datetime.now(UTC) <= timedelta(hours=12)
    superuser_client.post(LIST + "new/", {**FORM, "lifetime": ""})
    assert Token.objects.filter(expires_at=None).count() == 1
    response = superuser_client.post(LIST + "new/", {**FORM, "lifetime": "90 years"})
    assert "is not a lifetime" in response.content.decode()
    assert Token.objects.count() == 2


def test_the_list_shows_and_finds_tokens_that_expire_soon_or_have_expired(
    superuser_client: Client,
) -> None:
    for name, days in (("later", 15), ("next", 13), ("past", -1)):
        create_token(name=name, lifetime=timedelta(days=days))
    create_token(name="forever")
    page = superuser_client.get(LIST).content.decode()
    assert "1 token expires within 14 days" in page
    assert page.count(">expires soon<") == 1
    for state, names in (("active", {"later", "next", "forever"}), ("expired", {"past"})):
        found = superuser_client.get(LIST, {"state": state}).context["cl"].result_list
        assert {token.name for token in found} == names


def test_a_revoked_token_is_rejected_from_the_next_call_on(superuser_client: Client) -> None:
    secret = create_token(name="lost laptop")
    token = Token.objects.get()
    assert superuser_client.post(f"{LIST}{token.id}/revoke/").status_code == 302
    with pytest.raises(NotAuthenticated):
        authenticate(secret)
    assert AuditEntry.objects.get(action="token.revoked").resource_id == token.id


def test_revoking_twice_is_one_audit_event(superuser_client: Client) -> None:
    create_token(name="t")
    token = Token.objects.get()
    superuser_client.post(f"{LIST}{token.id}/revoke/")
    revoked_at = Token.objects.get().revoked_at
    superuser_client.post(LIST, {"action": "revoke_selected", "_selected_action": [token.id]})
    assert Token.objects.get().revoked_at == revoked_at
    assert AuditEntry.objects.filter(action="token.revoked").count() == 1


def test_only_selected_tokens_are_revoked(superuser_client: Client) -> None:
    for name in ("one", "two", "three"):
        create_token(name=name)
    selected_ids = list(Token.objects.filter(name__in=["one", "two"]).values_list("id", flat=True))
    superuser_client.post(LIST, {"action": "revoke_selected", "_selected_action": selected_ids})
    assert Token.objects.get(revoked_at__isnull=True).name == "three"


def test_both_actions_need_their_permission_and_a_post(
    superuser_client: Client, staff_client: Callable[..., Client]
) -> None:
    create_token(name="t")
    token = Token.objects.get()
    viewer = staff_client("decisions.view_token")
    assert viewer.post(f"{LIST}{token.id}/revoke/").status_code == 403
    assert viewer.post(f"{LIST}{token.id}/acts_for/", {"acts_for": "x"}).status_code == 403
    assert viewer.post(LIST + "new/", FORM).status_code == 403
    assert "New token" not in viewer.get(LIST).content.decode()
    assert "/revoke/" not in viewer.get(f"{LIST}{token.id}/change/").content.decode()
    assert superuser_client.get(f"{LIST}{token.id}/revoke/").status_code == 405
    assert Token.objects.get().revoked_at is None
