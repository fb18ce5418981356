"""The database refuses a row of `decisions` that contradicts itself or repeats another row."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models import Model
from django.test import override_settings

from decisions.audit.sealer import Sealer
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.one_time_login import create_login_path
from decisions.identity.principals import Principal, create_token
from decisions.memory.objects import put_shell
from decisions.memory.state import AxisChange, apply_changes
from decisions.models import (
    AuditSeal,
    AxisValue,
    ChatAnswer,
    Confirmation,
    Conversation,
    Decision,
    Event,
    LoginLink,
    ObjectVersion,
    Outcome,
    PolicyRule,
    Tenant,
    Token,
    User,
    UserObject,
    Workspace,
)
from tests.support.decisions.continuity import RISKY, SHELL, SendChat, owner_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
# Constraint, table, and the columns that would contradict it.
CONTRADICTIONS: tuple[tuple[str, type[Model], dict[str, Any]], ...] = (
    ("token_trust_level", Token, {"trust": "total"}),
    ("decision_kind_known", Decision, {"kind": "wish"}),
    ("decision_mode_known", Decision, {"mode": "maybe"}),
    ("confirmation_status_known", Confirmation, {"status": "maybe", "decided_at": NOW}),
    ("confirmation_decided_iff_not_waiting", Confirmation, {"decided_at": NOW}),
    ("confirmation_out_of_band_has_no_token", Confirmation, {"delivery": "out_of_band"}),
    ("confirmation_used_only_if_confirmed", Confirmation, {"used_at": NOW}),
    ("rule_verdict_known", PolicyRule, {"verdict": "maybe"}),
    ("rule_scope_named", PolicyRule, {"scope": "workspace"}),
    ("axis_known", AxisValue, {"axis": "luck"}),
    ("axis_within_0_and_1", AxisValue, {"value": 1.5}),
    ("object_type_known", UserObject, {"object_type": "note"}),
    ("object_levels_known", ObjectVersion, {"confidence": "total"}),
    ("outcome_status_known", Outcome, {"status": "lucky", "reported_at": NOW}),
    ("outcome_reported_iff_it_has_a_status", Outcome, {"status": "success"}),
    ("event_layer_known", Event, {"layer": "L5"}),
)
# Constraint, table, and the columns in which the copy of a row differs.
REPETITIONS: tuple[tuple[str, type[Model], dict[str, Any]], ...] = (
    ("decisions_tenant_name_key", Tenant, {}),
    ("workspace_name_per_tenant", Workspace, {}),
    ("user_id_per_workspace", User, {}),
    ("decisions_token_digest_key", Token, {}),
    ("decisions_loginlink_digest_key", LoginLink, {}),
    ("decisions_decision_deed_key_key", Decision, {}),
    ("decisions_confirmation_decision_id_key", Confirmation, {}),
    ("decisions_outcome_decision_id_key", Outcome, {}),
    ("decisions_event_decision_id_key", Event, {}),
    ("rule_version_once", PolicyRule, {"retired_at": NOW}),
    ("rule_in_force_once", PolicyRule, {"key": "rule_other"}),
    ("axis_once_per_user", AxisValue, {}),
    ("object_name_per_user", UserObject, {}),
    ("object_version_once", ObjectVersion, {"is_current": False}),
    ("object_one_current", ObjectVersion, {"version": 2}),
    ("conversation_per_user", Conversation, {}),
    ("chat_key_per_user", ChatAnswer, {}),
    ("decisions_auditseal_pkey", AuditSeal, {"position": 1, "entry_id": -1, "mac": "0" * 64}),
    ("one_seal_per_entry", AuditSeal, {"mac": "0" * 64}),
    ("one_seal_per_mac", AuditSeal, {"entry_id": -1}),
)


@pytest.fixture
def rows(principal: Principal, send_chat: SendChat) -> None:
    """Create a row in each of the tables."""
    create_token(name="test")
    create_rule(RuleFields("deny", tool="x", reason="test"), actor="test")
    send_chat(RISKY)
    Decision.objects.update(call_key="k" * 64)
    apply_changes(owner_of(principal), [AxisChange("time", -0.5, 0.5, "chat")])
    put_shell(principal=principal, call={**SHELL, "user_id": "alice"})
    with override_settings(ONE_TIME_LOGIN=True):
        create_login_path()
    Sealer().seal_all()


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("constraint", "model", "columns"), CONTRADICTIONS, ids=[row[0] for row in CONTRADICTIONS]
)
def test_a_row_cannot_contradict_itself(
    constraint: str, model: type[Model], columns: dict[str, Any]
) -> None:
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        model._default_manager.update(**columns)


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("constraint", "model", "columns"), REPETITIONS, ids=[row[0] for row in REPETITIONS]
)
def test_a_row_cannot_repeat_another(
    constraint: str, model: type[Model], columns: dict[str, Any]
) -> None:
    copy = model._default_manager.all()[0]
    copy.pk = 10_000 if model is AuditSeal else model._meta.pk.get_default()
    for name, value in columns.items():
        setattr(copy, name, value)
    # SQLite names the columns; the trigger of the seals refuses the row before that.
    refusal = f"{constraint}|UNIQUE constraint failed|append-only"
    with pytest.raises(IntegrityError, match=refusal), transaction.atomic():
        copy.save(force_insert=True)
