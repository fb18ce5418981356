"""Confirmations: what a token is valid for, and that a person decides once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import override_settings

from decisions.authorization.confirm_by_token import confirm_decision
from decisions.authorization.confirmations import (
    OpenedConfirmation,
    expire_due,
    mark_used,
    open_confirmation,
    refuse,
)
from decisions.authorization.sealed_arguments import seal_arguments
from decisions.foundation.errors import ConfirmTokenInvalid, Conflict, DecisionNotFound, Forbidden
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Confirmation, Decision, DecisionKind
from decisions.signals import decision_resolved
from tests.support.decisions.confirmations import CONFIRMER, confirm
from tests.support.runs.concurrent_calls import at_once


@pytest.fixture
def make_decision(principal: Principal) -> Callable[..., Decision]:
    """Create a decision that has to be confirmed: `make_decision(user_id="alice")`."""

    def make(**columns: Any) -> Decision:
        base: dict[str, Any] = {
            "tenant_id": principal.tenant_id,
            "workspace_id": principal.workspace_id,
            "principal_id": principal.id,
            "user_id": "alice",
            "kind": "chat",
            "mode": "confirm",
            "subject_digest": "d" * 64,
            "created_at": datetime.now(UTC),
        }
        decision = Decision(**{**base, **columns})
        decision.sealed_arguments = seal_arguments(decision, {"message": "m"})
        decision.save(force_insert=True)
        return decision

    return make


@pytest.fixture
def opened(make_decision: Callable[..., Decision]) -> OpenedConfirmation:
    return open_confirmation(make_decision(), delivery="inline")


def attempt(principal: Principal, opened: OpenedConfirmation, **other: Any) -> Confirmation:
    call = {
        "decision_id": opened.confirmation.decision_id,
        "user_id": "alice",
        "confirm_token": opened.clear_token,
        **other,
    }
    confirm_decision(principal=principal, call=call)
    opened.confirmation.refresh_from_db()
    return opened.confirmation


def tries() -> list[str]:
    rows = AuditEntry.objects.filter(action="confirmation.tried").order_by("id")
    return [row.metadata["failed"] for row in rows]


def test_a_wrong_token_confirms_nothing(principal: Principal, opened: OpenedConfirmation) -> None:
    with pytest.raises(ConfirmTokenInvalid):
        attempt(principal, opened, confirm_token="tökén")
    assert Confirmation.objects.get().status == "waiting"
    assert tries() == ["wrong"]


def test_a_token_is_valid_for_its_own_user_alone(
    principal: Principal, opened: OpenedConfirmation
) -> None:
    with pytest.raises(ConfirmTokenInvalid):
        attempt(principal, opened, user_id="bob")
    with pytest.raises(ConfirmTokenInvalid):
        attempt(replace(principal, acts_for=frozenset({"bob"})), opened)
    assert Confirmation.objects.get().wrong_tries == 0  # tries of others do not count
    assert tries() == ["unknown", "unknown"]


def test_another_workspace_cannot_confirm(outsider: Principal, opened: OpenedConfirmation) -> None:
    with pytest.raises(ConfirmTokenInvalid):
        attempt(outsider, opened)
    assert Confirmation.objects.get().status == "waiting"


def test_a_token_is_valid_for_its_own_decision_alone(
    principal: Principal, opened: OpenedConfirmation, make_decision: Callable[..., Decision]
) -> None:
    other = open_confirmation(make_decision(), delivery="inline")
    with pytest.raises(ConfirmTokenInvalid):
        attempt(principal, other, confirm_token=opened.clear_token)
    with pytest.raises(ConfirmTokenInvalid):
        attempt(principal, opened, decision_id=999_999)


def test_a_token_is_invalid_after_its_decision_changed(
    principal: Principal, opened: OpenedConfirmation
) -> None:
    Decision.objects.update(subject_digest="e" * 64)
    with pytest.raises(ConfirmTokenInvalid):
        attempt(principal, opened)


def test_five_wrong_tries_invalidate_the_token(
    principal: Principal, opened: OpenedConfirmation
) -> None:
    for _ in range(5):
        with pytest.raises(ConfirmTokenInvalid):
            attempt(principal, opened, confirm_token="guess")
    with pytest.raises(ConfirmTokenInvalid):
        attempt(principal, opened)
    assert tries() == ["wrong"] * 4 + ["burned", "no token"]


def test_four_wrong_tries_do_not_invalidate_the_token(
    principal: Principal, opened: OpenedConfirmation
) -> None:
    for _ in range(4):
        with pytest.raises(ConfirmTokenInvalid):
            attempt(principal, opened, confirm_token="guess")
    assert attempt(principal, opened).status == "confirmed"


def test_concurrent_wrong_tries_are_all_counted(
    principal: Principal, opened: OpenedConfirmation
) -> None:
    def guess() -> None:
        with pytest.raises(ConfirmTokenInvalid):
            attempt(principal, opened, confirm_token="guess")

    at_once([guess] * 8)
    assert Confirmation.objects.get().token_digest is None
    assert sorted(tries()) == ["burned", "no token", "no token", "no token", *["wrong"] * 4]


def test_an_expired_token_confirms_nothing(
    principal: Principal, opened: OpenedConfirmation
) -> None:
    Confirmation.objects.update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    with pytest.raises(ConfirmTokenInvalid):
        attempt(principal, opened)
    assert Confirmation.objects.get().status == "expired"


def test_a_token_lives_half_an_hour_by_default(make_decision: Callable[..., Decision]) -> None:
    confirmation = open_confirmation(make_decision(), delivery="inline").confirmation
    assert confirmation.expires_at - confirmation.created_at == timedelta(minutes=30)
    with override_settings(CONFIRM_TTL_S=60):
        short = open_confirmation(make_decision()).confirmation
    assert short.expires_at - short.created_at == timedelta(minutes=1)


def test_of_fifty_concurrent_confirmations_one_succeeds(
    principal: Principal, opened: OpenedConfirmation
) -> None:
    def attempt_once() -> bool:
        try:
            return attempt(principal, opened).status == "confirmed"
        except ConfirmTokenInvalid:
            return False

    assert sum(at_once([attempt_once] * 50)) == 1
    assert AuditEntry.objects.filter(action="confirmation.confirmed").count() == 1
    assert tries() == ["confirmed"] * 49


def test_the_token_itself_is_not_stored(principal: Principal, opened: OpenedConfirmation) -> None:
    attempt(principal, opened)
    token = str(opened.clear_token)
    assert len(token) >= 43  # 256 bits in base 64
    rows = [
        *Confirmation.objects.values(),
        *Decision.objects.values(),
        *AuditEntry.objects.values(),
    ]
    assert token not in str(rows)


def test_out_of_band_delivery_creates_no_token(make_decision: Callable[..., Decision]) -> None:
    with override_settings(CONFIRM_DELIVERY="out_of_band"):
        assert open_confirmation(make_decision()).clear_token is None


@pytest.mark.parametrize("kind", [DecisionKind.TOOL, DecisionKind.STEP])
def test_a_tool_call_never_has_a_token(make_decision: Callable[..., Decision], kind: str) -> None:
    opened = open_confirmation(make_decision(kind=kind, tool="submit_form"), delivery="inline")
    assert opened.clear_token is None
    assert opened.confirmation.delivery == "out_of_band"


def test_a_person_confirms_or_refuses_once(opened: OpenedConfirmation) -> None:
    decision_id = opened.confirmation.decision_id
    assert refuse(decision_id=decision_id, by="admin:ann", how="admin").status == "refused"
    with pytest.raises(Conflict) as raised:
        confirm(decision_id=decision_id, by="admin:bob", how="admin")
    assert raised.value.details == {"status": "refused"}
    assert Confirmation.objects.get().decided_by == "admin:ann"
    assert tries() == ["refused"]


def test_a_refused_decision_has_no_valid_token(
    principal: Principal, opened: OpenedConfirmation
) -> None:
    refuse(decision_id=opened.confirmation.decision_id, by="admin:ann", how="admin")
    with pytest.raises(ConfirmTokenInvalid):
        attempt(principal, opened)


def test_concurrent_confirm_refuse_and_expiry_end_a_decision_once(
    opened: OpenedConfirmation,
) -> None:
    decision_id, notified = opened.confirmation.decision_id, []

    def on_resolved(confirmation: Confirmation, **_: object) -> None:
        notified.append(confirmation.status)

    def attempt_to(call: Callable[..., Confirmation]) -> Callable[[], str]:
        def attempt_once() -> str:
            try:
                return call(decision_id=decision_id, by="admin:ann", how="admin").status
            except Conflict:
                return ""

        return attempt_once

    late = datetime.now(UTC) + timedelta(hours=1)
    decision_resolved.connect(on_resolved)
    try:
        calls = [attempt_to(confirm), attempt_to(refuse)] * 5
        statuses = at_once([*calls, lambda: "expired" if expire_due(late) else ""])
    finally:
        decision_resolved.disconnect(on_resolved)
    assert [one for one in statuses if one] == notified == [Confirmation.objects.get().status]


def test_a_credential_cannot_confirm_its_own_request(
    make_decision: Callable[..., Decision],
) -> None:
    opened = open_confirmation(
        make_decision(kind="step", tool="submit_form", principal_id="token:tok_1")
    )
    with pytest.raises(Forbidden):
        confirm(decision_id=opened.confirmation.decision_id, by="token:tok_1", how="api")
    assert Confirmation.objects.get().status == "waiting"
    assert tries() == ["own"]


def test_every_failed_try_by_scope_is_audited(
    principal: Principal, make_decision: Callable[..., Decision]
) -> None:
    ops = replace(principal, id="token:ops", scopes=CONFIRMER)
    for decision_id in (999_999, make_decision(mode="act").pk):
        with pytest.raises(ConfirmTokenInvalid):
            confirm_decision(principal=ops, call={"decision_id": decision_id, "user_id": "alice"})
    assert tries() == ["unknown", "nothing waits"]
    rows = AuditEntry.objects.filter(action="confirmation.tried")
    assert {(row.actor, row.metadata["how"]) for row in rows} == {("token:ops", "api")}


def test_a_decision_without_a_confirmation_cannot_be_confirmed(
    make_decision: Callable[..., Decision],
) -> None:
    with pytest.raises(DecisionNotFound):
        confirm(decision_id=make_decision(mode="act").pk, by="admin:ann", how="admin")


def test_an_undecided_confirmation_expires(opened: OpenedConfirmation) -> None:
    assert expire_due() == 0
    assert expire_due(datetime.now(UTC) + timedelta(hours=1)) == 1
    assert Confirmation.objects.get().status == "expired"
    with pytest.raises(Conflict):
        confirm(decision_id=opened.confirmation.decision_id, by="admin:ann", how="admin")


def test_a_confirmation_is_used_once(opened: OpenedConfirmation) -> None:
    assert not mark_used(opened.confirmation)
    confirm(decision_id=opened.confirmation.decision_id, by="admin:ann", how="admin")
    assert sum(at_once([lambda: mark_used(opened.confirmation)] * 8)) == 1
