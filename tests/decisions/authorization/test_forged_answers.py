# ruff: noqa: S608  (attacks are plain SQL)
"""Who can write to the database, but has no key, cannot confirm: an answer needs its MAC."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import F

from decisions.audit.record import AuditEvent, record
from decisions.authorization import confirmations
from decisions.authorization.authorize import admit_call, tool_call_request
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import ConfirmationRequired
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Confirmation, Decision
from runs.models import Run
from runs.submission.resume import resume_settled_runs
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.decisions.confirmations import (
    answer_confirmation,
    confirm,
    decision_id,
    reload_run,
)

_FORGE = (
    "UPDATE decisions_confirmation SET status = 'confirmed', decided_at = CURRENT_TIMESTAMP,"
    " decided_by = 'admin:ann', decided_how = 'admin' WHERE decision_id = %s"
)


def run_sql(statement: str, *params: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        assert cursor.rowcount == 1


def not_genuine() -> list[str]:
    rows = AuditEntry.objects.filter(action="confirmation.not_genuine")
    return list(rows.values_list("resource_id", flat=True))


def forge_status(number: int, _other: int) -> None:
    run_sql(_FORGE, number)


def answer_in_this_version(number: int) -> None:
    confirm(decision_id=number, by="admin:ann", how="admin")


def copy_answer(number: int, other: int) -> None:
    """Copy the genuine answer to another call."""
    run_sql(
        "UPDATE decisions_confirmation SET status = 'confirmed',"
        " (decided_at, decided_by, decided_how, answer_mac) ="
        " (SELECT decided_at, decided_by, decided_how, answer_mac"
        " FROM decisions_confirmation WHERE decision_id = %s) WHERE decision_id = %s",
        other,
        number,
    )


def move_approval(number: int, other: int) -> None:
    """Give the approved decision on another step's call the identity of the waiting call."""
    others = Decision.objects.values("run_id", "step_index", "subject_digest")
    found = others.annotate(deed_key=F("call_key")).get(pk=number)  # by column
    run_sql("UPDATE decisions_decision SET deed_key = NULL WHERE id = %s", number)
    names = ", ".join(f"{name} = %s" for name in found)
    run_sql(f"UPDATE decisions_decision SET {names} WHERE id = %s", *found.values(), other)
    run_sql(_FORGE, number)


@pytest.mark.parametrize("is_upgrading", [False, True])
@pytest.mark.parametrize("attack", [forge_status, copy_answer, move_approval])
def test_a_forged_confirmation_permits_no_step(
    attack: Callable[[int, int], None],
    is_upgrading: bool,
    settings: Any,
    worker: WorkerProcess,
    submit_calls: Callable[..., Run],
    notes: Callable[[], str],
) -> None:
    settings.ROLLING_UPGRADE = is_upgrading
    approved = submit_calls("risk:a")
    worker.work()
    other = decision_id(approved)
    answer_confirmation(approved)
    worker.work()
    run = submit_calls("risk:b")
    worker.work()
    number = decision_id(run)
    attack(number, other)
    resume_settled_runs()
    worker.work()
    waiting = reload_run(run).waiting_for or {}
    assert (notes(), waiting["decisionId"] > number) == ("a", True)
    assert waiting["question"].endswith("does not count: no valid answer of a person is stored.")
    assert not_genuine() == [str(other if attack is move_approval else number)]
    answer_confirmation(run)
    worker.work()
    assert (reload_run(run).status, notes()) == ("succeeded", "ab")


@pytest.fixture
def requested(principal: Principal) -> Callable[..., int]:
    """Make a call that needs a confirmation, and return its decision: `requested("x", key="k")`."""
    create_rule(RuleFields("confirm", tool="test_risk", reason="it is risky"), actor="t")

    def make(text: str, *, caller: Principal = principal, key: str = "k") -> int:
        call = tool_call_request(caller, "test_risk", {"text": text}, key=key)
        with pytest.raises(ConfirmationRequired) as raised:
            admit_call(call)
        number: int = raised.value.details["decisionId"]
        return number

    return make


def test_a_forged_confirmation_permits_no_direct_call(
    requested: Callable[..., int], principal: Principal
) -> None:
    number = requested("x")
    forge_status(number, 0)
    call = tool_call_request(principal, "test_risk", {"text": "x"}, key="k")
    with pytest.raises(ConfirmationRequired, match=f"of decision {number} does not count") as again:
        admit_call(call)
    assert not_genuine() == [str(number)]
    confirm(decision_id=again.value.details["decisionId"], by="admin:ann", how="admin")
    assert admit_call(call) is not None


def test_an_approval_of_another_caller_permits_nothing(
    requested: Callable[..., int], principal: Principal, outsider: Principal
) -> None:
    others = requested("x", caller=outsider)
    confirm(decision_id=others, by="admin:ann", how="admin")
    number = requested("x")
    key = Decision.objects.values_list("call_key", flat=True).get(pk=number)
    run_sql("UPDATE decisions_decision SET deed_key = NULL WHERE id = %s", number)
    run_sql("UPDATE decisions_decision SET deed_key = %s WHERE id = %s", key, others)
    assert requested("x") not in (number, others)
    assert not_genuine() == [str(others)]


@pytest.mark.parametrize("is_of_older_version", [False, True])
@pytest.mark.parametrize("column", ["decided_by", "decided_how", "decided_at", "id"])
def test_an_approval_with_another_answerer_or_time_permits_nothing(
    requested: Callable[..., int], settings: Any, column: str, is_of_older_version: bool
) -> None:
    settings.ROLLING_UPGRADE = is_of_older_version
    number = requested("x")
    (answer_in_older_version if is_of_older_version else answer_in_this_version)(number)
    later = datetime.now(UTC) + timedelta(minutes=10)
    value = later if column == "decided_at" else "other"
    run_sql(
        f"UPDATE decisions_confirmation SET {column} = %s WHERE decision_id = %s", value, number
    )
    assert requested("x") != number


def test_a_refusal_cannot_be_made_an_approval(
    requested: Callable[..., int],
) -> None:
    number = requested("x")
    confirmations.refuse(decision_id=number, by="admin:ann", how="admin")
    run_sql("UPDATE decisions_confirmation SET status = 'confirmed' WHERE decision_id = %s", number)
    assert requested("x") != number


def test_an_answer_that_an_older_version_recorded_is_requested_again(
    requested: Callable[..., int],
) -> None:
    number = requested("x")
    confirm(decision_id=number, by="admin:ann", how="admin")
    run_sql("UPDATE decisions_confirmation SET answer_mac = NULL WHERE decision_id = %s", number)
    assert requested("x") != number


def answer_in_older_version(number: int, **recorded: str) -> None:
    """Store and record that a person confirmed a call, as versions before the MAC of answers do."""
    run_sql(_FORGE, number)
    decision = Decision.objects.select_related("confirmation").get(pk=number)
    details = {
        "confirmationId": decision.confirmation.id,
        "kind": decision.kind,
        "how": "admin",
        "tool": decision.tool,
        "argsDigest": decision.subject_digest,
        **({"runId": decision.run_id} if decision.run_id else {}),
        **recorded,
    }
    owner = decision.tenant_id, decision.workspace_id
    confirmed = "confirmation.confirmed", "admin:ann", "decision", str(number)
    record(AuditEvent(*confirmed, *owner, details))


def remove_mac(number: int) -> None:
    run_sql("UPDATE decisions_confirmation SET answer_mac = NULL WHERE decision_id = %s", number)


@pytest.fixture
def upgrading(settings: Any) -> None:
    settings.ROLLING_UPGRADE = True


@pytest.mark.usefixtures("upgrading")
def test_an_audited_answer_of_an_older_version_counts_during_a_rolling_upgrade(
    requested: Callable[..., int], principal: Principal
) -> None:
    number = requested("x")
    answer_in_older_version(number)
    approval = admit_call(tool_call_request(principal, "test_risk", {"text": "x"}, key="k"))
    assert approval is not None
    assert approval.decision_id == number


@pytest.mark.usefixtures("upgrading")
@pytest.mark.parametrize("details", [{"how": "link"}, {"tool": "other"}, {"kind": "step"}])
def test_an_answer_that_differs_from_its_audit_row_does_not_count(
    requested: Callable[..., int], details: dict[str, str]
) -> None:
    number = requested("x")
    answer_in_older_version(number, **details)
    assert requested("x") != number


@pytest.mark.usefixtures("upgrading")
def test_an_answer_without_audit_row_does_not_count_during_a_rolling_upgrade(
    requested: Callable[..., int],
) -> None:
    number = requested("x")
    forge_status(number, 0)
    assert requested("x") != number


@pytest.mark.usefixtures("upgrading")
def test_an_answer_of_this_version_does_not_count_without_its_mac_during_a_rolling_upgrade(
    requested: Callable[..., int],
) -> None:
    number = requested("x")
    confirm(decision_id=number, by="admin:ann", how="admin")
    remove_mac(number)
    assert requested("x") != number


@pytest.mark.usefixtures("upgrading")
def test_an_audited_answer_does_not_count_for_another_call_during_a_rolling_upgrade(
    requested: Callable[..., int],
) -> None:
    number, other = requested("x"), requested("y", key="other")
    answer_in_older_version(other)
    move_approval(number, other)
    assert requested("x") not in {number, other}


@pytest.mark.usefixtures("upgrading")
@pytest.mark.parametrize("answer", [answer_in_older_version, answer_in_this_version])
def test_an_answer_does_not_count_for_another_step_with_the_same_call_during_a_rolling_upgrade(
    worker: WorkerProcess,
    submit_calls: Callable[..., Run],
    notes: Callable[[], str],
    answer: Callable[[int], None],
) -> None:
    run = submit_calls("risk:a", "risk:a")
    worker.work()
    first = decision_id(run)
    answer(first)
    resume_settled_runs()
    worker.work()
    second = decision_id(run)
    assert (notes(), second > first) == ("a", True)
    move_approval(second, first)
    run_sql("UPDATE decisions_confirmation SET used_at = NULL WHERE decision_id = %s", first)
    remove_mac(first)
    resume_settled_runs()
    worker.work()
    assert (notes(), decision_id(run) > second) == ("a", True)


def test_a_run_that_names_a_forged_approval_waits_for_a_person(
    worker: WorkerProcess,
    principal: Principal,
    submit_calls: Callable[..., Run],
    notes: Callable[[], str],
) -> None:
    """A run of a direct call names the call's approval in its options."""
    run = submit_calls("risk:a")
    worker.work()
    number = decision_id(run)
    answer_confirmation(run)
    run_sql("UPDATE decisions_decision SET kind = 'tool', run_id = NULL WHERE id = %s", number)
    run_sql("UPDATE decisions_confirmation SET used_at = decided_at WHERE decision_id = %s", number)
    submit_run(
        principal=principal,
        template_id="test_calling",
        inputs=run.inputs,
        options={"mode": "async", "decisionId": number},
    )
    worker.work()
    assert (Confirmation.objects.filter(status="waiting").count() >= 1, notes()) == (True, "")
