"""Test the flow of S2 §5 and the launch conditions of §8 as an agent host."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from decisions.models import AuditEntry, Confirmation, Evidence, Outcome
from tests.contract.continuity_calls import CALLS, SendCall, over_mcp, over_rest
from tests.contract.mcp_host import Host
from tests.support.decisions.continuity import SHELL, SUCCESS_PATH

SLOTS = {
    "environment": "production",
    "target": "the table orders",
    "success_criteria": "no row of 2019 is left",
}
RISKY: dict[str, Any] = {
    "user_id": "alice",
    "message": "Delete all orders of 2019 from the production database now.",
    "idempotency_key": "k1",
    "slots": SLOTS,
}
HARMLESS: dict[str, Any] = {
    **RISKY,
    "message": "Run the unit tests on my laptop.",
    "idempotency_key": "k2",
    "slots": {**SLOTS, "environment": "laptop", "target": "the tests"},
}


@pytest.fixture
def mcp(host: Host) -> SendCall:
    """Send calls over MCP."""
    return over_mcp(host)


def call_ok(send_call: SendCall, tool: str, arguments: Any) -> dict[str, Any]:
    code, answer = send_call(tool, arguments)
    assert code == "OK", answer
    return answer


def outcome_of(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "decision_id": number,
        "user_id": "alice",
        "outcome_status": "success",
        "outcome_note": "done",
        **fields,
    }


def go_through_the_gate(send_call: SendCall) -> dict[str, Any]:
    """Send a risky message, pass its gate, confirm it and report its outcome."""
    answer = call_ok(send_call, "continuity_chat", RISKY)
    trace, number = answer["trace"], answer["decision_id"]
    assert (trace["l4_gate"]["hit"], trace["mode"]) == (True, "confirm")
    confirmation = trace["high_risk_confirmation"]
    assert confirmation["required"] is True
    before_confirmation, _ = send_call("continuity_report_outcome", outcome_of(number))
    assert before_confirmation == "decision_not_confirmed"
    arguments = {"decision_id": number, "user_id": "alice"}
    wrong, _ = send_call("continuity_confirm_decision", {**arguments, "confirm_token": "x"})
    assert wrong == "invalid_or_expired_confirm_token"
    token = {"confirm_token": confirmation["confirm_token"]}
    confirmed = call_ok(send_call, "continuity_confirm_decision", {**arguments, **token})
    assert (confirmed["confirmed"], confirmed["decision_id"]) == (True, number)
    return call_ok(send_call, "continuity_report_outcome", outcome_of(number))


def test_a_risky_message_passes_the_gate_and_gets_an_outcome(mcp: SendCall) -> None:
    record = go_through_the_gate(mcp)
    assert record["outcome_status"] == "success"
    outcome = Outcome.objects.get()
    assert (outcome.pk, outcome.status) == (record["outcome_id"], "success")
    assert Confirmation.objects.get().status == "confirmed"
    assert Evidence.objects.filter(decision_id=record["decision_id"]).exists()
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"decision.made", "confirmation.confirmed", "outcome.reported"} <= actions


def test_a_risky_message_passes_the_gate_over_rest(api: httpx.Client) -> None:
    assert go_through_the_gate(over_rest(api))["outcome_status"] == "success"


def test_all_seven_tools_answer(mcp: SendCall) -> None:
    number = call_ok(mcp, "continuity_chat", HARMLESS)["decision_id"]
    user = {"user_id": "alice"}
    call_ok(mcp, "continuity_report_outcome", outcome_of(number))
    call_ok(mcp, "continuity_put_shell", {**SHELL, **user})
    call_ok(mcp, "continuity_put_success_path", {**SUCCESS_PATH, **user})
    assert call_ok(mcp, "continuity_list_objects", user)["count"] == 2
    state = call_ok(mcp, "continuity_get_state", user)
    assert state["axes"]["time"]["updated_at"] is not None
    code, _ = mcp(
        "continuity_confirm_decision", {**user, "decision_id": number, "confirm_token": "x"}
    )
    assert code == "invalid_or_expired_confirm_token"
    assert len(CALLS) == 7


def test_the_version_of_the_contract_is_reported(host: Host, api: httpx.Client) -> None:
    experimental = host.request(
        "initialize",
        {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    )["result"]["capabilities"]["experimental"]
    assert experimental["continuity"]["continuity_mcp_version"].startswith("1.1.")
    assert api.get("/api/schema").json()["info"]["version"].startswith("1.1.")
