"""Outcomes: reported once, and the changes of state and reliability they cause."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db.models import F

from decisions.authorization.confirmations import refuse
from decisions.foundation.errors import (
    DecisionNotConfirmed,
    ForbiddenUser,
    InvalidInput,
    OutcomeNotFound,
    OutcomeReported,
)
from decisions.identity.principals import Principal, authenticate, create_token
from decisions.memory.learning import Forecast
from decisions.memory.objects import put_success_path
from decisions.memory.outcomes import report_outcome
from decisions.memory.state import AxisChange, apply_changes, read_state
from decisions.models import AuditEntry, Confirmation, Evidence, Outcome
from tests.support.decisions.confirmations import confirm
from tests.support.decisions.continuity import FORECAST, create_decision_with_outcome, owner_of
from tests.support.runs.concurrent_calls import at_once

STEPS = [{"tool": "read_page", "args": {"url": "${url}"}}]
L4_FORECAST = Forecast(impact={"asset": -0.9}, confidence=0.9, cost=4.0, layer="L4")


def report(principal: Principal, decision_id: int, **fields: Any) -> dict[str, Any]:
    call = {
        "decision_id": decision_id,
        "user_id": "alice",
        "outcome_status": "success",
        "outcome_note": "done",
        **fields,
    }
    return report_outcome(principal=principal, call=call)


def reliability(principal: Principal) -> float:
    return read_state(owner_of(principal)).axes["reliability"].value


def succeed(principal: Principal, times: int) -> None:
    for _ in range(times):
        report(
            principal,
            create_decision_with_outcome(
                principal, forecast=Forecast({}, 0.5, 0, "L1")
            ).decision_id,
        )


def test_a_report_returns_the_specified_fields(principal: Principal) -> None:
    outcome = create_decision_with_outcome(principal)
    record = report(
        principal,
        outcome.decision_id,
        outcome_status="partial",
        system_caused=True,
        failure_type="context_loss",
    )
    assert record.pop("created_at")
    assert record == {
        "decision_id": outcome.decision_id,
        "outcome_id": outcome.id,
        "outcome_status": "partial",
        "outcome_note": "done",
        "system_caused": True,
        "failure_type": "context_loss",
        "impact_error": None,
        "cost_error": None,
        "proposed_success_path": None,
    }
    entry = AuditEntry.objects.get(action="outcome.reported")
    assert entry.resource_id == str(outcome.decision_id)
    assert entry.metadata["failureType"] == "context_loss"


def test_the_identical_report_again_returns_the_record(principal: Principal) -> None:
    decision_id = create_decision_with_outcome(principal).decision_id
    first = report(principal, decision_id)
    assert report(principal, decision_id, system_caused=False, failure_type=None) == first
    assert Evidence.objects.count() == 1
    assert AuditEntry.objects.filter(action="outcome.reported").count() == 1


@pytest.mark.parametrize(
    "other",
    [
        {"outcome_status": "failed"},
        {"outcome_note": "Done"},
        {"system_caused": True},
        {"actual_cost": 0},
        {"procedure": "by hand"},
    ],
)
def test_a_different_second_report_is_refused(principal: Principal, other: dict[str, Any]) -> None:
    decision_id = create_decision_with_outcome(principal).decision_id
    report(principal, decision_id)
    with pytest.raises(OutcomeReported) as refusal:
        report(principal, decision_id, **other)
    assert refusal.value.message == "pending outcome not found"
    assert (refusal.value.code, refusal.value.http_status) == ("pending_outcome_not_found", 409)
    assert Outcome.objects.get().status == "success"


def test_unknown_and_foreign_decisions_get_the_same_error(
    principal: Principal, outsider: Principal
) -> None:
    foreign = [
        create_decision_with_outcome(principal, user_id="bob"),
        create_decision_with_outcome(outsider),
    ]
    for decision_id in (999_999, *(outcome.decision_id for outcome in foreign)):
        with pytest.raises(OutcomeNotFound) as refusal:
            report(principal, decision_id)
        assert refusal.value.message == "pending outcome not found"
        assert (refusal.value.code, refusal.value.http_status) == ("pending_outcome_not_found", 404)
    assert AuditEntry.objects.filter(action="outcome.refused").count() == 3
    assert not Outcome.objects.filter(status__isnull=False).exists()


def test_a_user_that_the_caller_may_not_act_for_is_refused_first(principal: Principal) -> None:
    caller = authenticate(create_token(name="b", users=["bob"]))
    with pytest.raises(ForbiddenUser):
        report(caller, create_decision_with_outcome(principal).decision_id)


def test_a_success_accepts_no_failure_type(principal: Principal) -> None:
    with pytest.raises(InvalidInput, match="failure_type"):
        report(
            principal, create_decision_with_outcome(principal).decision_id, failure_type="data_loss"
        )


def test_a_high_risk_decision_needs_confirmation_before_its_outcome(principal: Principal) -> None:
    decision_id = create_decision_with_outcome(
        principal, mode="confirm", forecast=L4_FORECAST
    ).decision_id
    with pytest.raises(DecisionNotConfirmed):
        report(principal, decision_id)
    assert AuditEntry.objects.get(action="outcome.refused").metadata["why"]
    assert not Evidence.objects.exists()
    confirm(decision_id=decision_id, by="admin:root", how="admin")
    assert report(principal, decision_id)["outcome_status"] == "success"


def test_a_refused_or_expired_decision_accepts_no_outcome(principal: Principal) -> None:
    decision_id = create_decision_with_outcome(principal, mode="confirm").decision_id
    refuse(decision_id=decision_id, by="admin:root", how="admin")
    with pytest.raises(DecisionNotConfirmed, match="refused"):
        report(principal, decision_id)
    Confirmation.objects.update(status="expired")
    with pytest.raises(DecisionNotConfirmed, match="expired"):
        report(principal, decision_id)


def test_concurrent_reports_add_evidence_once(principal: Principal) -> None:
    decision_id = create_decision_with_outcome(principal).decision_id
    records = at_once([partial(report, principal, decision_id)] * 8)
    assert all(record == records[0] for record in records)
    assert Evidence.objects.count() == 1


def test_a_success_moves_the_state_by_its_forecast(principal: Principal) -> None:
    outcome = create_decision_with_outcome(principal)
    report(principal, outcome.decision_id)
    row = Evidence.objects.get()
    assert (row.axis, row.delta, row.confidence, row.source) == ("time", -0.4, 0.5, "outcome")
    assert (row.decision_id, row.note) == (outcome.decision_id, "success: done")
    assert read_state(owner_of(principal)).axes["time"].value == 0.45


def test_a_partial_success_has_half_the_confidence(principal: Principal) -> None:
    report(principal, create_decision_with_outcome(principal).decision_id, outcome_status="partial")
    assert Evidence.objects.get().confidence == 0.25


def test_the_actual_impact_counts_more_than_the_forecast(principal: Principal) -> None:
    decision_id = create_decision_with_outcome(principal).decision_id
    impact = {"time": -0.7, "money": -0.2}
    record = report(principal, decision_id, actual_impact_vector=impact, actual_cost=1.5)
    assert record["impact_error"] == pytest.approx((0.3 + 0.2) / 6, abs=1e-6)
    assert record["cost_error"] == pytest.approx(1.5 - FORECAST.cost)
    rows = Evidence.objects.order_by("axis").values_list("axis", "delta", "confidence")
    assert list(rows) == [("money", -0.2, 0.9), ("time", -0.7, 0.9)]


def test_the_cost_of_the_actual_impact_is_computed_like_a_forecast(principal: Principal) -> None:
    decision_id = create_decision_with_outcome(principal).decision_id
    record = report(principal, decision_id, actual_impact_vector={"time": -1.0})
    assert record["cost_error"] == pytest.approx(0.5 - FORECAST.cost)
    assert Outcome.objects.get().actual_cost == 0.5


def test_a_failure_lowers_only_reliability(principal: Principal) -> None:
    report(principal, create_decision_with_outcome(principal).decision_id, outcome_status="failed")
    assert list(Evidence.objects.values_list("axis", "delta")) == [("reliability", -0.2)]
    assert reliability(principal) == 0.755


def test_a_system_caused_failure_does_not_lower_reliability(principal: Principal) -> None:
    record = report(
        principal,
        create_decision_with_outcome(principal).decision_id,
        outcome_status="failed",
        system_caused=True,
    )
    assert record["failure_type"] == "system_error"
    assert not Evidence.objects.exists()


def test_a_failed_high_risk_decision_has_failure_type_high_risk(principal: Principal) -> None:
    decision_id = create_decision_with_outcome(principal, forecast=L4_FORECAST).decision_id
    assert report(principal, decision_id, outcome_status="failed")["failure_type"] == "high_risk"


def test_five_clean_successes_raise_reliability_once(principal: Principal) -> None:
    succeed(principal, 4)
    assert reliability(principal) == 0.8
    succeed(principal, 1)
    assert reliability(principal) == 0.82
    assert Evidence.objects.get().source == "streak"
    succeed(principal, 4)
    assert reliability(principal) == 0.82
    succeed(principal, 1)
    assert reliability(principal) == 0.84


def test_a_failure_restarts_the_count_of_successes(principal: Principal) -> None:
    succeed(principal, 4)
    system = {"outcome_status": "failed", "system_caused": True}
    report(principal, create_decision_with_outcome(principal).decision_id, **system)
    succeed(principal, 4)
    assert reliability(principal) == 0.8


def test_reliability_is_not_raised_past_its_ceiling(principal: Principal) -> None:
    apply_changes(owner_of(principal), [AxisChange("reliability", 0.36, 1.0, "chat")])
    succeed(principal, 5)
    assert reliability(principal) == 0.9
    succeed(principal, 5)
    assert Evidence.objects.filter(source="streak").count() == 1


def test_reliability_is_frozen_for_a_week_after_an_l4_decision(principal: Principal) -> None:
    high_risk = create_decision_with_outcome(principal, forecast=L4_FORECAST)
    succeed(principal, 5)
    assert reliability(principal) == 0.8
    Outcome.objects.filter(pk=high_risk.pk).update(opened_at=F("opened_at") - timedelta(days=8))
    succeed(principal, 1)
    assert reliability(principal) == 0.82


def test_a_success_with_a_procedure_proposes_a_valid_success_path(principal: Principal) -> None:
    slots = {"url": "https://example.com", "success_criteria": "it has them"}
    forecast = Forecast({}, 0.5, 0, "L1", intent="read the notes of a release", slots=slots)
    decision_id = create_decision_with_outcome(principal, forecast=forecast).decision_id
    path = report(principal, decision_id, procedure=STEPS)["proposed_success_path"]
    assert (path["required_slots"], path["success_criteria"]) == (["url"], "it has them")
    assert "https://example.com" in path["slot_definitions"]["url"]
    written = put_success_path(principal=principal, call={**path, "user_id": "alice"})
    assert written["item"]["payload"]["procedure"] == STEPS


@pytest.mark.parametrize(
    "fields",
    [
        {"outcome_status": "failed", "success_criteria": "x", "procedure": STEPS},
        {"procedure": STEPS},
        {"success_criteria": "x"},
    ],
)
def test_a_failure_or_an_incomplete_report_proposes_no_success_path(
    principal: Principal, fields: dict[str, Any]
) -> None:
    assert (
        report(principal, create_decision_with_outcome(principal).decision_id, **fields)[
            "proposed_success_path"
        ]
        is None
    )
