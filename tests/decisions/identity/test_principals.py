"""Principals: the caller of a request, and the rights of its token."""

from __future__ import annotations

from functools import partial

import pytest

from decisions.foundation.errors import Forbidden, InvalidInput, NotAuthenticated
from decisions.identity.principals import (
    DEFAULT_SCOPES,
    Principal,
    authenticate,
    create_token,
    ensure_user,
    ensure_workspace,
    local_principal,
    throttle_key,
)
from decisions.identity.tokens import revoke_token
from decisions.models import AuditEntry, Tenant, Token, User, Workspace
from tests.support.runs.concurrent_calls import at_once


def test_a_token_has_its_workspace_scopes_and_trust(principal: Principal) -> None:
    secret = create_token(
        name="ci", workspace="elsewhere", users=["ann"], scopes=frozenset({"runs:read"})
    )
    caller = authenticate(secret)
    workspace = Workspace.objects.get(name="elsewhere")
    assert (caller.workspace_id, caller.tenant_id) == (workspace.id, workspace.tenant_id)
    assert caller.scopes == {"runs:read"}
    assert (caller.trust, caller.user_id) == ("remote", "ann")
    assert caller.id == f"token:{Token.objects.get().id}"


def test_a_token_that_names_users_acts_only_for_them(principal: Principal) -> None:
    caller = authenticate(create_token(name="ci", users=["ann", " bo ", "ann"]))
    assert [caller.may_act_for(user_id) for user_id in ("ann", "bo", "cy", "", " bo ")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert caller.user_id is None  # the token names two users, so none of them is the default
    assert set(User.objects.values_list("user_id", flat=True)) == {"ann", "bo"}


def test_a_token_without_users_and_the_local_principal_act_for_any_user(
    principal: Principal,
) -> None:
    caller = authenticate(create_token(name="ci"))
    assert caller.may_act_for("ann")
    assert local_principal().may_act_for("ann")
    assert (caller.acts_for, caller.user_id) == (None, None)
    assert not User.objects.exists()


@pytest.mark.parametrize(
    "user_id",
    ["x" * 129, "a\0b", "a\nb", "\u202ea", "Alice Smith", "a\u2003b", "a/b", "a\\b", ".x"],
)
def test_an_invalid_user_id_creates_no_token(principal: Principal, user_id: str) -> None:
    with pytest.raises(InvalidInput):
        create_token(name="ci", users=["ann", user_id])
    assert not Token.objects.exists()


def test_concurrent_requests_create_a_user_once(principal: Principal) -> None:
    at_once([partial(ensure_user, workspace_id=principal.workspace_id, user_id="ann")] * 8)
    assert User.objects.count() == 1


def test_only_a_keyed_digest_of_a_token_is_stored(principal: Principal) -> None:
    secret = create_token(name="ci")
    row = Token.objects.get()
    assert secret.startswith("cty_")
    token_row = " ".join(str(value) for value in Token.objects.values().get().values())
    audit_rows = " ".join(str(row) for row in AuditEntry.objects.values())
    assert secret not in token_row + audit_rows
    assert len(row.digest) == 64
    assert throttle_key(secret) not in (secret, row.digest)


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "cty_",
        "nothing",
        "cty_" + "x" * 43,
        "cty_" + "x" * 10_000,
        "cty_é",
        "cty_a\0b",
        "Bearer cty_x",
        " cty_x",
        "cty_\ud800",
    ],
)
def test_every_invalid_token_is_refused_with_the_same_message(
    principal: Principal, secret: str
) -> None:
    create_token(name="ci")
    with pytest.raises(NotAuthenticated) as refused:
        authenticate(secret)
    assert refused.value.message == "The bearer token is not valid here."


def test_a_revoked_token_is_refused_at_once_and_revoked_once(principal: Principal) -> None:
    secret = create_token(name="ci")
    token_id = Token.objects.get().id
    revoked = at_once([partial(revoke_token, token_id=token_id, actor="admin:ann")] * 4)
    assert sorted(revoked) == [False, False, False, True]
    with pytest.raises(NotAuthenticated):
        authenticate(secret)
    assert AuditEntry.objects.filter(action="token.revoked").count() == 1


@pytest.mark.parametrize("name", ["", "   "])
def test_a_token_needs_a_name(principal: Principal, name: str) -> None:
    with pytest.raises(InvalidInput):
        create_token(name=name)
    assert not Token.objects.exists()


def test_unknown_scopes_are_refused_by_name(principal: Principal) -> None:
    with pytest.raises(InvalidInput) as refused:
        create_token(name="ci", scopes=frozenset({"runs:read", "runs:fly"}))
    assert refused.value.details == {"unknown": ["runs:fly"]}


def test_a_new_token_lacks_the_confirm_targets_and_metrics_scopes(
    principal: Principal,
) -> None:
    assert not {"confirm", "targets:admin", "metrics:read"} & DEFAULT_SCOPES
    assert "confirm" not in local_principal().scopes


def test_a_token_that_names_users_needs_an_explicit_audit_scope(
    principal: Principal,
) -> None:
    assert "audit:read" in authenticate(create_token(name="ci")).scopes
    assert "audit:read" not in authenticate(create_token(name="ci", users=["ann"])).scopes
    with_audit_scope = create_token(name="ci", users=["ann"], scopes=frozenset({"audit:read"}))
    assert authenticate(with_audit_scope).scopes == {"audit:read"}


def test_a_missing_scope_is_named_in_the_error(principal: Principal) -> None:
    with pytest.raises(Forbidden) as refused:
        principal.require("confirm")
    assert refused.value.details == {"scope": "confirm"}


def test_concurrent_requests_create_a_workspace_once(principal: Principal) -> None:
    workspaces = at_once([partial(ensure_workspace, "new", "tenant of its own")] * 8)
    assert len({workspace.id for workspace in workspaces}) == 1
    assert Workspace.objects.filter(name="new").count() == 1
    assert Tenant.objects.filter(name="tenant of its own").count() == 1
