"""Test the flow of S2 §5 and the launch conditions of §8 as an agent host."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import httpx
import pytest
from mcp import Client

from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Confirmation, Decision, Evidence, Outcome
from mcp_server.server import ContinuityServer
from tests.contract.continuity_calls import CALLS, SendCall, over_mcp, over_rest
from tests.contract.mcp_host import Host, PrincipalTransport
from tests.support.decisions.continuity import SHELL, SUCCESS_PATH

Era = Literal["auto", "legacy"]
TRANSPORTS = ("stdio", "http", "sse")
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


def test_the_token_is_returned_once_and_never_stored(mcp: SendCall) -> None:
    token = call_ok(mcp, "continuity_chat", RISKY)["trace"]["high_risk_confirmation"][
        "confirm_token"
    ]
    again = call_ok(mcp, "continuity_chat", RISKY)
    assert token not in str(again)
    rows = [*Decision.objects.values(), *Confirmation.objects.values()]
    assert token not in str([*rows, *AuditEntry.objects.values()])


def test_a_message_without_slots_gets_clarifying_questions(mcp: SendCall) -> None:
    answer = call_ok(mcp, "continuity_chat", {k: v for k, v in RISKY.items() if k != "slots"})
    assert answer["trace"]["mode"] == "clarify_first"
    assert (answer["decision_id"], answer["decision"]) == (None, None)
    assert 1 <= len(answer["asked_questions"]) <= 3
    assert not Decision.objects.exists()


def test_every_answer_contains_reality_first(mcp: SendCall) -> None:
    for message in (RISKY, HARMLESS):
        reality = call_ok(mcp, "continuity_chat", message)["trace"]["reality_first"]
        assert {"mode", "shell_bias_hit", "intervention", "question"} <= set(reality)


def test_a_failure_lowers_the_score_of_the_next_similar_decision(mcp: SendCall) -> None:
    first = call_ok(mcp, "continuity_chat", HARMLESS)
    failed = outcome_of(first["decision_id"], outcome_status="failed")
    assert call_ok(mcp, "continuity_report_outcome", failed)["failure_type"] == "repeat_error"
    second = call_ok(mcp, "continuity_chat", {**HARMLESS, "idempotency_key": "k3"})
    assert second["decision"]["score"] < first["decision"]["score"]
    assert second["trace"]["matched_failure_types"] == ["repeat_error"]
    assert second["trace"]["feature_penalty"] == pytest.approx(3.0, abs=0.1)


def test_a_success_is_stored_as_a_path_and_proposed_again(mcp: SendCall) -> None:
    number = call_ok(mcp, "continuity_chat", HARMLESS)["decision_id"]
    steps = [{"tool": "read_page", "args": {"url": "http://x.test/${target}"}}]
    record = call_ok(mcp, "continuity_report_outcome", outcome_of(number, procedure=steps))
    proposed = record["proposed_success_path"]
    stored = call_ok(mcp, "continuity_put_success_path", {**proposed, "user_id": "alice"})["item"]
    answer = call_ok(mcp, "continuity_chat", {**HARMLESS, "idempotency_key": "k3"})
    assert answer["trace"]["best_success_path"]["object_id"] == stored["object_id"]


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


async def _tools_and_answer(era: Era, principal: Principal) -> tuple[set[str], dict[str, Any]]:
    server = ContinuityServer(["continuity"], PrincipalTransport(principal))
    async with Client(server, mode=era) as client:
        answer = await client.call_tool("continuity_chat", RISKY)
        return {tool.name for tool in (await client.list_tools()).tools}, answer.structured_content


@pytest.mark.parametrize("era", ["auto", "legacy"])
def test_both_protocol_generations_offer_the_seven_tools(era: Era, principal: Principal) -> None:
    names, answer = asyncio.run(_tools_and_answer(era, principal))
    assert names == set(CALLS)
    assert answer["trace"]["high_risk_confirmation"]["required"] is True
