"""The lifetime of tokens: how it is written, what operators see of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from decisions.foundation.errors import InvalidInput, TokenExpired
from decisions.identity.principals import (
    Principal,
    authenticate,
    create_token,
    is_credential_active,
)
from decisions.identity.tokens import parse_lifetime
from decisions.models import AuditEntry, Token
from runs.operations.health.checks import check_confirmers, check_tokens


@pytest.mark.parametrize(
    ("text", "lifetime"),
    [
        ("90d", timedelta(days=90)),
        (" 12h ", timedelta(hours=12)),
        ("30m", timedelta(minutes=30)),
        ("3650d", timedelta(days=3650)),
    ],
)
def test_a_lifetime_is_a_number_of_days_hours_or_minutes(text: str, lifetime: timedelta) -> None:
    assert parse_lifetime(text) == lifetime


@pytest.mark.parametrize(
    "text", ["", "0d", "-1d", "90", "d", "1.5d", "3651d", "9999999d", "٣d", "90d\n1d", "1y"]
)
def test_any_other_lifetime_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a lifetime"):
        parse_lifetime(text)


def test_a_token_is_valid_before_its_expiry_alone(principal: Principal) -> None:
    secret = create_token(name="ci", lifetime=timedelta(seconds=60))
    caller = authenticate(secret)
    assert is_credential_active(caller)
    Token.objects.update(expires_at=datetime.now(UTC))
    assert not is_credential_active(caller)
    with pytest.raises(TokenExpired):
        authenticate(secret)


def test_a_token_without_an_expiry_stays_valid(principal: Principal) -> None:
    secret = create_token(name="ci")
    assert Token.objects.get().expires_at is None
    assert is_credential_active(authenticate(secret))
    assert "expiresAt" not in AuditEntry.objects.get(action="token.created").metadata


def test_the_commands_create_and_list_tokens_with_an_expiry(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in ("create_token", "list_tokens"):
        monkeypatch.setattr(f"runs.management.commands.{command}.prepare_home", lambda: None)
    out, notes = StringIO(), StringIO()
    call_command("create_token", "laptop", expires="13d", stdout=out, stderr=notes)
    assert "expires after 13d" in notes.getvalue()
    create_token(name="forever")
    listed, warning = StringIO(), StringIO()
    call_command("list_tokens", stdout=listed, stderr=warning)
    first, second = listed.getvalue().splitlines()
    assert "expires soon" in first
    assert first.endswith("laptop")
    assert "no expiry" in second
    assert "1 of 2 expire within 14 days" in warning.getvalue()
    assert out.getvalue().strip() not in listed.getvalue()
    created = AuditEntry.objects.get(action="token.created", metadata__name="laptop")
    expires_at = Token.objects.get(name="laptop").expires_at
    assert expires_at is not None
    assert created.metadata["expiresAt"] == expires_at.isoformat(timespec="seconds")


def test_doctor_names_the_tokens_that_expire_soon(principal: Principal) -> None:
    assert check_tokens().verdict == "ok"
    create_token(name="laptop", lifetime=timedelta(days=13, hours=1))
    create_token(name="later", lifetime=timedelta(days=15))
    result = check_tokens()
    assert (result.verdict, result.what) == ("note", "expire soon: laptop (in 13 d)")


def test_doctor_names_the_tokens_whose_scope_to_confirm_has_no_effect(principal: Principal) -> None:
    create_token(name="inbox", scopes=frozenset({"continuity:write", "confirm"}))
    assert check_confirmers().verdict == "ok"
    create_token(name="old", scopes=frozenset({"confirm", "runs:write"}))
    create_token(name="of a user", scopes=frozenset({"confirm"}), users=["alice"])
    Token.objects.create(
        name="expired",
        digest="d",
        workspace_id=principal.workspace_id,
        trust="remote",
        scopes=["confirm", "runs:write"],
        expires_at=datetime(2020, 1, 1, tzinfo=UTC),
    )
    result = check_confirmers()
    assert (result.verdict, result.what.rpartition(": ")[2]) == ("note", "of a user, old")
    assert "--scopes continuity:write,confirm" in result.recovery
