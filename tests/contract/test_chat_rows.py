"""Test POST /chat and continuity_chat: the fields of S2, and what is refused (S2 §4)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from decisions.api.schemas.chat import CHAT_INPUT, CHAT_OUTPUT
from decisions.foundation.validation.json_schema import compile_schema
from decisions.identity.principals import Principal
from tests.contract.continuity_calls import SendCall, over_mcp, over_rest
from tests.contract.mcp_host import Host
from tests.support.rest.rest import continuity_refusal, json_of

CHAT = "continuity_chat"
RISKY: dict[str, Any] = {
    "user_id": "alice",
    "message": "Delete all rows of the orders table.",
    "idempotency_key": "k1",
    "slots": {"environment": "staging", "target": "orders", "success_criteria": "it is empty"},
}
TRACE = {
    "trace_id",
    "entry_id",
    "decision_id",
    "outcome_id",
    "outcome_status",
    "main_constraint",
    "task_type",
    "l4_gate",
    "feature_penalty",
    "matched_failure_types",
    "high_risk_confirmation",
    "reality_first",
    "best_success_path",
    "continuity_failures",
}
ANSWER = {
    "session_id",
    "response",
    "asked_questions",
    "decision",
    "decision_id",
    "user_state",
    "trace",
}


@pytest.fixture
def rest(api: httpx.Client) -> SendCall:
    """Send calls over REST."""
    return over_rest(api)


@pytest.mark.parametrize("body", [{}, {"idempotency_key": ""}, {"idempotency_key": "  "}])
def test_a_call_without_a_key_gets_the_error_message_of_the_contract(
    api: httpx.Client, body: dict[str, Any]
) -> None:
    call = {name: value for name, value in RISKY.items() if name != "idempotency_key"}
    problem = continuity_refusal(api.post("/api/v1/chat", json={**call, **body}), 400)
    assert problem == {"code": "validation_error", "detail": "idempotency_key is required"}


@pytest.mark.parametrize(
    "changed",
    [
        {"slots": {"environment": ["x"]}},
        {"slots": {"a b": "x"}},
        {"slots": None},
        {"message": "x\u0000"},
        {"message": "  "},
        {"idempotency_key": 5},
        {"more": 1},
        {"session_id": "a/b"},
        {"session_id": ""},
        {"message": None},
        {"idempotency_key": "k" * 256},
        {"user_id": "../bob"},
        {"slots": {"target": "x" * 2001}},
        {"confirmed": True},
    ],
    ids=str,
)
def test_input_that_the_schema_does_not_allow_is_a_validation_error(
    rest: SendCall, changed: dict[str, Any]
) -> None:
    assert rest(CHAT, {**RISKY, **changed})[0] == "validation_error"


def test_a_message_of_64_kib_is_accepted_and_one_byte_more_is_refused(rest: SendCall) -> None:
    fits = "é" * (32 * 1024)
    assert rest(CHAT, {**RISKY, "message": fits})[0] == "OK"
    assert rest(CHAT, {**RISKY, "message": fits + "x"})[0] == "validation_error"


def test_the_answer_has_every_field_of_the_contract(rest: SendCall) -> None:
    _, answer = rest(CHAT, RISKY)
    assert answer.keys() == ANSWER
    assert answer["trace"].keys() >= TRACE
    assert answer["trace"]["l4_gate"].keys() == {"hit", "threshold", "reason", "top"}
    assert answer["trace"]["reality_first"].keys() == {
        "mode",
        "shell_bias_hit",
        "intervention",
        "question",
    }
    assert answer["decision"].keys() == {
        "score",
        "predicted_gain",
        "predicted_risk",
        "memory_penalty",
        "uncertainty_penalty",
    }
    assert compile_schema(dict(CHAT_OUTPUT)).is_valid(answer)
    assert compile_schema(dict(CHAT_INPUT)).is_valid(RISKY)


def test_a_clarifying_answer_names_only_the_missing_fields(rest: SendCall) -> None:
    call = {name: value for name, value in RISKY.items() if name != "slots"}
    _, answer = rest(CHAT, call)
    assert answer["trace"].keys() == {
        "trace_id",
        "mode",
        "task_type",
        "missing_slots",
        "reality_first",
    }
    assert answer["trace"]["mode"] == "clarify_first"
    assert compile_schema(dict(CHAT_OUTPUT)).is_valid(answer)


def test_rest_and_mcp_return_the_same_answer_for_the_same_key(
    host: Host, api: httpx.Client, principal: Principal
) -> None:
    mcp_answer = over_mcp(host)(CHAT, RISKY)[1]
    rest_answer = json_of(api.post("/api/v1/chat", json=RISKY))
    del mcp_answer["trace"]["high_risk_confirmation"]["confirm_token"]
    assert rest_answer == mcp_answer
