"""The service of POST /chat: its questions, its decisions, and the rows it writes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from django.test import override_settings

from decisions.chat.services import chat
from decisions.foundation.errors import ForbiddenUser, InvalidInput
from decisions.identity.principals import Principal
from decisions.memory.objects import put_success_path
from decisions.memory.outcomes import report_outcome
from decisions.models import AuditEntry, Confirmation, Conversation, Decision, Event, Outcome
from tests.support.decisions.continuity import HARMLESS, KNOWN_SLOTS, RISKY, SUCCESS_PATH, SendChat


def test_a_harmless_message_with_all_slots_gets_mode_act(send_chat: SendChat) -> None:
    answer = send_chat(HARMLESS)
    trace = answer["trace"]
    assert (trace["mode"], trace["task_type"]) == ("act", "execution")
    assert trace["l4_gate"] == {
        "hit": False,
        "threshold": 0.85,
        "reason": "no rule hit",
        "top": 0.0,
    }
    assert trace["high_risk_confirmation"] == {"required": False}
    assert answer["decision"]["score"] > 0
    assert answer["user_state"]["main_constraint"] == trace["main_constraint"] == "money"
    assert not Confirmation.objects.exists()


def test_missing_slots_lead_to_questions_and_no_decision(send_chat: SendChat) -> None:
    answer = send_chat(RISKY, slots={})
    assert answer["trace"]["mode"] == "clarify_first"
    assert answer["trace"]["missing_slots"] == list(KNOWN_SLOTS)
    assert len(answer["asked_questions"]) == 3
    assert (answer["decision"], answer["decision_id"], answer["user_state"]) == (None, None, None)
    assert all(question in answer["response"] for question in answer["asked_questions"])
    assert not Decision.objects.exists()
    assert not Event.objects.exists()
    assert not AuditEntry.objects.filter(action="decision.made").exists()
    assert Conversation.objects.count() == 1


def test_answers_in_the_session_fill_the_missing_slots(send_chat: SendChat) -> None:
    questions = send_chat(RISKY, slots={})
    session = questions["session_id"]
    send_chat("1. staging 2. the orders table", slots={}, session_id=session)
    answer = send_chat("No row is left in it", slots={}, session_id=session)
    assert answer["trace"]["l4_gate"]["hit"]
    decision = Decision.objects.get()
    assert decision.arguments["message"] == RISKY
    assert decision.arguments["slots"] == {
        "environment": "staging",
        "target": "the orders table",
        "success_criteria": "No row is left in it",
    }


def test_a_new_request_discards_open_questions(send_chat: SendChat) -> None:
    session = send_chat(RISKY, slots={})["session_id"]
    answer = send_chat("What is an index?", slots={}, session_id=session)
    assert answer["trace"]["task_type"] == "concept_exploration"
    assert answer["trace"]["mode"] == "act"
    assert Conversation.objects.get().asked == []


def test_a_session_belongs_to_its_user(send_chat: SendChat) -> None:
    session = send_chat(RISKY, slots={})["session_id"]
    other = send_chat("staging", slots={}, session_id=session, user_id="bob")
    assert other["trace"]["mode"] == "clarify_first"
    assert Conversation.objects.filter(session_id=session).count() == 2


def test_a_risky_message_waits_for_a_person(send_chat: SendChat) -> None:
    answer = send_chat(RISKY)
    confirmation_request = answer["trace"]["high_risk_confirmation"]
    confirmation = Confirmation.objects.get()
    assert answer["trace"]["mode"] == "confirm"
    assert answer["trace"]["l4_gate"]["reason"].startswith("irreversible_deletion")
    assert confirmation_request["confirmation_id"] == confirmation.id
    assert (
        confirmation_request["confirm_endpoint"]
        == f"/api/v1/decision/{answer['decision_id']}/confirm"
    )
    assert confirmation_request["expires_at"] == confirmation.expires_at.isoformat()
    assert len(confirmation_request["confirm_token"]) >= 43
    assert Event.objects.get().layer == "L4"
    assert Decision.objects.get().rule == "irreversible_deletion"


@override_settings(CONFIRM_DELIVERY="out_of_band")
def test_out_of_band_delivery_returns_no_token(send_chat: SendChat) -> None:
    confirmation_request = send_chat(RISKY)["trace"]["high_risk_confirmation"]
    assert confirmation_request.keys() == {"required", "confirmation_id", "expires_at"}


def test_the_gate_overrides_the_score_and_slots_alone_do_not_trigger_it(
    send_chat: SendChat,
) -> None:
    slots = {**KNOWN_SLOTS, "environment": "production", "target": "delete all customers"}
    assert send_chat(HARMLESS, slots=slots)["trace"]["mode"] == "act"
    deploy = send_chat("Deploy build 42.", slots=slots)["trace"]
    assert deploy["mode"] == "confirm"
    assert deploy["l4_gate"]["reason"].startswith("production")


def test_the_gate_also_checks_answers_to_questions(send_chat: SendChat) -> None:
    session = send_chat("Tidy up the project.", slots={})["session_id"]
    send_chat("1. staging 2. the project", slots={}, session_id=session)
    answer = send_chat("3. drop the database afterwards", slots={}, session_id=session)
    assert answer["trace"]["mode"] in ("confirm", "clarify_first")
    send_chat("done", slots=KNOWN_SLOTS, session_id=session)
    assert not Decision.objects.filter(mode="act", arguments__message="Tidy up the project.")


def test_the_gate_hits_on_similarity_to_an_earlier_l4_event_only(send_chat: SendChat) -> None:
    first = send_chat(HARMLESS)
    assert first["trace"]["l4_gate"]["top"] == 0.0
    Event.objects.filter(pk=first["trace"]["entry_id"]).update(layer="L4")
    again = send_chat(f"{HARMLESS} Please.")["trace"]["l4_gate"]
    assert again["hit"]
    assert again["top"] >= 0.85
    assert again["reason"].startswith("similar_to_l4_event")
    assert not send_chat("Compile the documentation.")["trace"]["l4_gate"]["hit"]


def test_the_events_of_another_user_are_not_read(send_chat: SendChat) -> None:
    send_chat(HARMLESS, user_id="bob")
    Event.objects.update(layer="L4")
    assert send_chat(HARMLESS)["trace"]["l4_gate"]["top"] == 0.0


def test_similar_failures_lower_the_score_of_a_later_message(
    principal: Principal, send_chat: SendChat
) -> None:
    for _ in range(3):
        failed = send_chat(HARMLESS)["decision_id"]
        call = {
            "decision_id": failed,
            "user_id": "alice",
            "outcome_status": "failed",
            "outcome_note": "",
            "failure_type": "repeat_error",
        }
        report_outcome(principal=principal, call=call)
    answer = send_chat(HARMLESS)
    trace = answer["trace"]
    assert trace["matched_failure_types"] == ["repeat_error"]
    assert trace["feature_penalty"] == pytest.approx(9.0, abs=0.01)
    assert trace["continuity_failures"][0]["failure_type"] == "repeat_error"
    assert trace["mode"] == "clarify"
    assert answer["decision"]["score"] < 0
    assert send_chat("Compile the documentation.")["trace"]["matched_failure_types"] == []


def test_a_matching_success_path_raises_the_predicted_gain(
    principal: Principal, send_chat: SendChat
) -> None:
    plain = send_chat("Read the notes of the release.")
    put_success_path(principal=principal, call={"user_id": "alice", **SUCCESS_PATH})
    answer = send_chat(
        "Read the notes of the release.", slots={**KNOWN_SLOTS, "url": "https://example.com"}
    )
    best = answer["trace"]["best_success_path"]
    assert (plain["trace"]["best_success_path"], best["name"]) == (None, SUCCESS_PATH["name"])
    assert best["retrieval_score"] > 4
    gain = min(10.0, 5 + best["retrieval_score"] / 2)
    assert answer["decision"]["predicted_gain"] == pytest.approx(gain, abs=0.001)
    assert SUCCESS_PATH["name"] in answer["response"]


def test_the_score_is_the_sum_of_its_parts(send_chat: SendChat) -> None:
    send_chat(RISKY)
    answer = send_chat(RISKY)
    parts, trace = answer["decision"], answer["trace"]
    total = parts["predicted_gain"] - parts["predicted_risk"] - parts["memory_penalty"]
    total -= parts["uncertainty_penalty"] + trace["feature_penalty"]
    assert parts["memory_penalty"] > 0
    assert parts["score"] == pytest.approx(total, abs=0.001)


def test_a_decision_writes_one_row_of_each_kind(send_chat: SendChat) -> None:
    answer = send_chat(HARMLESS)
    trace = answer["trace"]
    decision, event, outcome = Decision.objects.get(), Event.objects.get(), Outcome.objects.get()
    assert (decision.pk, event.pk, outcome.pk) == (
        answer["decision_id"],
        trace["entry_id"],
        trace["outcome_id"],
    )
    assert (event.decision_id, outcome.decision_id) == (decision.pk, decision.pk)
    assert trace["outcome_status"] == "pending_actual_feedback"
    entry = AuditEntry.objects.get(action="decision.made")
    assert (entry.resource_id, entry.metadata["traceId"]) == (str(decision.pk), trace["trace_id"])
    assert decision.trace == trace


def test_no_row_contains_a_secret_or_the_token(send_chat: SendChat) -> None:
    secret = "sk-" + "a1B2" * 12
    answer = send_chat(f"Put the API key {secret} into the readme.")
    token = answer["trace"]["high_risk_confirmation"]["confirm_token"]
    rows = [
        str(row)
        for model in (Decision, Event, Conversation, Outcome, AuditEntry, Confirmation)
        for row in model.objects.values()
    ]
    assert not [row for row in rows if token in row or secret in row]


def test_a_secret_in_a_slot_is_not_stored(send_chat: SendChat) -> None:
    secret = "sk-" + "a1B2" * 12
    send_chat(HARMLESS, slots={**KNOWN_SLOTS, "target": f"the table of {secret}"})
    assert Decision.objects.get().arguments["slots"]["target"] == "the table of ***"
    rows = [row for model in (Outcome, Conversation) for row in model.objects.values()]
    assert secret not in str(rows)


@pytest.mark.parametrize("slot", ["password", "db_password", "api_key", "authorization"])
def test_the_value_of_a_slot_that_is_named_as_a_secret_is_not_stored(
    send_chat: SendChat, slot: str
) -> None:
    secret = "correct horse battery"
    answer = send_chat(HARMLESS, slots={**KNOWN_SLOTS, slot: secret})
    assert Decision.objects.get().arguments["slots"][slot] == "***"
    models = (Decision, Event, Conversation, Outcome, AuditEntry)
    assert secret not in str([answer, *(list(model.objects.values()) for model in models)])


def test_the_reply_is_in_the_language_of_the_message(send_chat: SendChat) -> None:
    assert "需要先由人确认" in send_chat("把生产库的订单表删了")["response"]
    assert "confirmation" in send_chat(RISKY)["response"]


def test_a_hint_is_one_question_and_stops_after_the_user_understood(send_chat: SendChat) -> None:
    message = "As a founder I must accept the offer and read the notes."
    first = send_chat(message, session_id="s")
    question = first["trace"]["reality_first"]["question"]
    assert first["trace"]["reality_first"]["intervention"] == "hint"
    assert question in first["response"]
    send_chat("Understood, thanks.", session_id="s")
    assert send_chat(message, session_id="s")["trace"]["reality_first"]["intervention"] == "none"


@pytest.mark.parametrize("message", [" ", "\n\t", "删" * 30_000])
def test_an_empty_or_too_long_message_is_refused(send_chat: SendChat, message: str) -> None:
    with pytest.raises(InvalidInput, match="message"):
        send_chat(message)
    assert not Conversation.objects.exists()


def test_a_credential_acts_only_for_its_users_and_refusals_are_audited(
    principal: Principal, send_chat: SendChat
) -> None:
    bound = Principal(
        "token:bound",
        principal.tenant_id,
        principal.workspace_id,
        principal.scopes,
        "local",
        acts_for=frozenset({"bob"}),
    )
    call = {"message": HARMLESS, "idempotency_key": "k"}
    messages = set()
    send_chat(HARMLESS)
    for user_id in ("alice", "unknown"):
        with pytest.raises(ForbiddenUser) as raised:
            asyncio.run(chat(principal=bound, call={**call, "user_id": user_id}))
        messages.add(raised.value.message)
    assert len(messages) == 1
    assert AuditEntry.objects.filter(action="access.refused", actor="token:bound").count() == 2


def test_an_old_failure_weighs_less(principal: Principal, send_chat: SendChat) -> None:
    failed = send_chat(HARMLESS)["decision_id"]
    call = {
        "decision_id": failed,
        "user_id": "alice",
        "outcome_status": "failed",
        "outcome_note": "",
        "failure_type": "data_loss",
    }
    report_outcome(principal=principal, call=call)
    Outcome.objects.filter(decision_id=failed).update(
        reported_at=datetime.now(UTC) - timedelta(days=30)
    )
    assert send_chat(HARMLESS)["trace"]["feature_penalty"] == pytest.approx(1.5, abs=0.01)
