"""Who may confirm with the scope `confirm`, how often an approval counts, and what people see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from decisions.authorization.authorize import ToolCallRequest, admit_call
from decisions.authorization.confirm_by_token import confirm_decision
from decisions.authorization.confirmations import open_confirmation
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import ConfirmationRequired, ConfirmTokenInvalid, Conflict
from decisions.identity.principals import Principal
from decisions.memory import objects
from decisions.models import Confirmation, Decision, ObjectVersion
from tests.support.decisions.confirmations import CONFIRMER, confirm
from tests.support.decisions.continuity import SHELL, create_decision

TOOL = "continuity_put_shell"


@pytest.fixture
def operator(principal: Principal) -> Principal:
    """Return a credential of the local workspace with the scope `confirm`."""
    return replace(principal, id="token:operator", scopes=CONFIRMER)


def require_confirmation(principal: Principal, **arguments: Any) -> int:
    """Create a rule that a Shell needs a confirmation, write one, and return the decision's id."""
    create_rule(RuleFields("confirm", tool=TOOL, reason="test"), actor="test")
    with pytest.raises(ConfirmationRequired) as required:
        put_shell(principal, **arguments)
    return int(required.value.details["decisionId"])


def put_shell(principal: Principal, **arguments: Any) -> Mapping[str, Any]:
    call = {**SHELL, "user_id": "alice", **arguments}
    return objects.put_shell(principal=principal, call=call)


@pytest.mark.parametrize("limit", ["workspace", "user", "users of the credential"])
def test_the_scope_confirm_is_limited_to_the_workspace_and_its_users(
    principal: Principal, outsider: Principal, operator: Principal, limit: str
) -> None:
    decision = create_decision(principal, mode="confirm")
    open_confirmation(decision)
    callers = {
        "workspace": (replace(operator, workspace_id=outsider.workspace_id), "alice"),
        "user": (operator, "bob"),
        "users of the credential": (replace(operator, acts_for=frozenset({"bob"})), "alice"),
    }
    caller, user_id = callers[limit]
    call = {"decision_id": decision.pk, "user_id": user_id}
    with pytest.raises(ConfirmTokenInvalid):
        confirm_decision(principal=caller, call=call)
    assert Confirmation.objects.get().status == "waiting"
    confirm_decision(principal=operator, call={**call, "user_id": "alice"})
    assert Confirmation.objects.get().status == "confirmed"


def test_an_approval_that_another_call_uses_first_is_not_used_again(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = require_confirmation(principal)
    confirm(decision_id=number, by="admin:ann", how="admin")

    def admit_after_another_call(request: ToolCallRequest) -> Confirmation | None:
        approval = admit_call(request)
        monkeypatch.setattr(objects, "admit_call", admit_call)
        put_shell(principal)
        return approval

    monkeypatch.setattr(objects, "admit_call", admit_after_another_call)
    with pytest.raises(Conflict):
        put_shell(principal)
    assert ObjectVersion.objects.count() == 1


def test_the_recorded_arguments_of_a_decision_contain_no_secret(principal: Principal) -> None:
    require_confirmation(
        principal, narratives={"api_key": "hunter2", "note": "sent Bearer abc.def-ghi"}
    )
    shown = Decision.objects.get().arguments["narratives"]
    assert shown == {"api_key": "***", "note": "sent ***"}
