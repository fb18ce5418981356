"""A change and its audit row are committed together: without the row, nothing is changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from django.apps import apps
from django.test import override_settings

from decisions.authorization.policy_rules import (
    RuleFields,
    change_rule,
    create_rule,
    retire_rule,
)
from decisions.chat.services import chat
from decisions.identity.one_time_login import create_login_path
from decisions.identity.principals import Principal, create_token
from decisions.identity.tokens import revoke_token, set_token_users
from decisions.memory.objects import put_shell
from decisions.memory.outcomes import report_outcome
from decisions.models import Confirmation, Outcome, PolicyRule, Token
from tests.support.decisions.confirmations import confirm
from tests.support.decisions.continuity import (
    KNOWN_SLOTS,
    RISKY,
    SHELL,
    create_decision_with_outcome,
)

ALICE = {"user_id": "alice"}
REPORT = {**ALICE, "outcome_status": "success", "outcome_note": "done"}
MESSAGE = {**ALICE, "message": RISKY, "slots": KNOWN_SLOTS, "idempotency_key": "k"}
Change = Callable[[Principal], object]


class AuditUnavailable(Exception):
    """Raised in place of writing an audit row."""


def reported_decision() -> int:
    return Outcome.objects.get(decision__confirmation__isnull=True).decision_id


# What is done, the module that writes its audit row, and the call.
CHANGES: Mapping[str, tuple[str, Change]] = {
    "create a token": (
        "identity.principals",
        lambda principal: create_token(name="new", workspace="new", users=["alice"]),
    ),
    "revoke a token": (
        "identity.tokens",
        lambda principal: revoke_token(token_id=Token.objects.get().id, actor="test"),
    ),
    "change the users of a token": (
        "identity.tokens",
        lambda principal: set_token_users(
            token_id=Token.objects.get().id, users=["bob"], actor="test"
        ),
    ),
    "create a login link": ("identity.one_time_login", lambda principal: create_login_path()),
    "create a rule": (
        "authorization.policy_rules",
        lambda principal: create_rule(RuleFields("deny", tool="y", reason="test"), actor="test"),
    ),
    "change a rule": (
        "authorization.policy_rules",
        lambda principal: change_rule(
            PolicyRule.objects.get().key,
            RuleFields("confirm", tool="x", reason="test"),
            actor="test",
        ),
    ),
    "retire a rule": (
        "authorization.policy_rules",
        lambda principal: retire_rule(PolicyRule.objects.get().key, actor="test"),
    ),
    "confirm a decision": (
        "authorization.confirmations",
        lambda principal: confirm(
            decision_id=Confirmation.objects.get().decision_id, by="admin:ann", how="admin"
        ),
    ),
    "write an object": (
        "memory.objects",
        lambda principal: put_shell(principal=principal, call={**SHELL, **ALICE}),
    ),
    "report an outcome": (
        "memory.outcomes",
        lambda principal: report_outcome(
            principal=principal, call={**REPORT, "decision_id": reported_decision()}
        ),
    ),
    "decide on a message": (
        "chat.protocol",
        lambda principal: asyncio.run(chat(principal=principal, call=MESSAGE)),
    ),
}


def all_rows() -> dict[str, list[Any]]:
    """Return every row of `decisions`."""
    models = apps.get_app_config("decisions").get_models()
    return {
        model.__name__: list(model._default_manager.order_by("pk").values()) for model in models
    }


@pytest.fixture
def existing_rows(principal: Principal) -> None:
    """Create the rows that the calls change."""
    create_token(name="old")
    create_rule(RuleFields("deny", tool="x", reason="test"), actor="test")
    create_decision_with_outcome(principal)
    create_decision_with_outcome(principal, mode="confirm")


@override_settings(ONE_TIME_LOGIN=True)
@pytest.mark.usefixtures("existing_rows")
@pytest.mark.parametrize(("module", "change"), CHANGES.values(), ids=CHANGES)
def test_nothing_is_changed_without_its_audit_row(
    principal: Principal, monkeypatch: pytest.MonkeyPatch, module: str, change: Change
) -> None:
    def fail(*events: object) -> None:
        raise AuditUnavailable

    before = all_rows()
    monkeypatch.setattr(f"decisions.{module}.record", fail)
    with pytest.raises(AuditUnavailable):
        change(principal)
    assert all_rows() == before
