"""Test POST /decision/{id}/confirm: all failures get one answer, one of fifty calls succeeds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from decisions.authorization.confirmations import OpenedConfirmation, open_confirmation
from decisions.authorization.sealed_arguments import seal_arguments
from decisions.identity.principals import Principal, create_token
from decisions.models import Confirmation, Decision
from tests.support.decisions.confirmations import CONFIRMER
from tests.support.rest.rest import bearer

INVALID = (400, "invalid_or_expired_confirm_token")
MALFORMED = (400, "validation_error")
MakeConfirmation = Callable[..., OpenedConfirmation]


@pytest.fixture
def make_confirmation(principal: Principal) -> MakeConfirmation:
    """Return a function that creates a pending decision of alice: `opened(kind="step")`."""

    def make(**columns: Any) -> OpenedConfirmation:
        base: dict[str, Any] = {
            "tenant_id": principal.tenant_id,
            "workspace_id": principal.workspace_id,
            "principal_id": "token:tok_asker",
            "user_id": "alice",
            "kind": "chat",
            "mode": "confirm",
            "subject_digest": "d" * 64,
            "created_at": datetime.now(UTC),
        }
        decision = Decision(**{**base, **columns})
        decision.sealed_arguments = seal_arguments(decision, {"path": "a.txt"})
        decision.save(force_insert=True)
        return open_confirmation(decision)

    return make


def path(number: Any) -> str:
    return f"/api/v1/decision/{number}/confirm"


def post(api: httpx.Client, number: Any, **body: Any) -> httpx.Response:
    return api.post(path(number), json={"user_id": "alice", **body})


def status_and_code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("code", "")


def test_the_right_token_confirms_once(
    api: httpx.Client, make_confirmation: MakeConfirmation
) -> None:
    opened = make_confirmation()
    number = opened.confirmation.decision_id
    answer = post(api, number, confirm_token=opened.clear_token)
    assert answer.status_code == 200
    assert set(answer.json()) == {"ok", "decision_id", "user_id", "confirmed", "message"}
    assert (answer.json()["decision_id"], answer.json()["confirmed"]) == (number, True)
    assert status_and_code(post(api, number, confirm_token=opened.clear_token)) == INVALID


def test_every_failure_gets_the_same_answer(
    api: httpx.Client, make_confirmation: MakeConfirmation
) -> None:
    opened, tool_call = make_confirmation(), make_confirmation(kind="step", tool="x")
    number, token = opened.confirmation.decision_id, opened.clear_token
    answers = [
        post(api, number, confirm_token="tökén"),
        post(api, 999_999, confirm_token=token),
        post(api, tool_call.confirmation.decision_id, confirm_token=token),
        api.post(path(number), json={"user_id": "bob", "confirm_token": token}),
    ]
    assert {status_and_code(answer) for answer in answers} == {INVALID}
    assert len({answer.text for answer in answers}) == 1


@pytest.mark.parametrize(
    ("number", "body"),
    [
        (-1, {"confirm_token": "x"}),
        (0, {"confirm_token": "x"}),
        ("abc", {"confirm_token": "x"}),
        ("9" * 19, {"confirm_token": "x"}),
        (1, {"confirm_token": ""}),
        (1, {"confirm_token": "t" * 100_000}),
        (1, {"confirm_token": 5}),
        (1, {"confirm_token": "x", "confirmed": True}),
        (1, {"confirm_token": "x", "user_id": 1}),
        (1, {}),
    ],
)
def test_malformed_input_is_a_validation_error(
    api: httpx.Client, number: Any, body: dict[str, Any]
) -> None:
    assert status_and_code(post(api, number, **body)) == MALFORMED


def test_an_agent_cannot_confirm_a_tool_call(
    api: httpx.Client, make_confirmation: MakeConfirmation
) -> None:
    number = make_confirmation(kind="step", tool="submit_form").confirmation.decision_id
    assert status_and_code(post(api, number, confirm_token="x")) == INVALID
    assert status_and_code(post(api, number)) == MALFORMED
    assert Confirmation.objects.get().status == "waiting"


def test_a_token_with_the_scope_confirms_a_tool_call_but_not_its_own(
    web: str, make_confirmation: MakeConfirmation
) -> None:
    secret = create_token(name="ops", scopes=CONFIRMER, trust="local")
    number = make_confirmation(kind="step", tool="x", user_id=None).confirmation.decision_id
    with httpx.Client(base_url=web, headers=bearer(secret), timeout=60) as ops:
        assert post(ops, number).status_code == 200
        principal_id = f"token:{Confirmation.objects.get().decided_by.removeprefix('token:')}"
        own_decision = make_confirmation(
            kind="step", tool="x", principal_id=principal_id
        ).confirmation.decision_id
        assert status_and_code(post(ops, own_decision)) == INVALID
        assert status_and_code(post(ops, 999_999)) == INVALID
    assert Confirmation.objects.get(decision_id=own_decision).status == "waiting"
