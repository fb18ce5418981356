"""Continuity data of users in the admin site."""

from __future__ import annotations

from django.test import Client

from decisions.identity.principals import Principal
from decisions.memory.objects import put_shell, put_success_path
from decisions.memory.outcomes import report_outcome
from decisions.models import Outcome, User, UserObject
from tests.support.decisions.continuity import SHELL, SUCCESS_PATH, create_decision_with_outcome

HOSTILE = "<script>alert(1)</script>"


def page(superuser_client: Client, *parts: str, **query: str) -> str:
    response = superuser_client.get("/".join(["/admin/decisions", *parts, ""]), query)
    assert response.status_code == 200
    return str(response.content.decode())


def report(principal: Principal, note: str) -> Outcome:
    outcome = create_decision_with_outcome(principal)
    call = {
        "decision_id": outcome.decision_id,
        "user_id": "alice",
        "outcome_status": "success",
        "outcome_note": note,
        "actual_impact_vector": {"time": -0.6},
        "procedure": "by hand",
        "success_criteria": "it is there",
    }
    report_outcome(principal=principal, call=call)
    return outcome


def test_the_page_of_a_user_shows_the_state_and_links_to_the_stored_objects(
    superuser_client: Client, principal: Principal
) -> None:
    report(principal, "done")
    user = User.objects.get(user_id="alice")
    shown = page(superuser_client, "user", str(user.pk), "change")
    assert "main constraint" in shown
    assert "0.365" in shown  # 0.5 - 0.25 * 0.9 * 0.6
    for name in ("userobject", "outcome", "evidence"):
        assert f"/admin/decisions/{name}/?q=alice&amp;workspace={user.workspace_id}" in shown


def test_the_page_of_an_object_lists_every_version(
    superuser_client: Client, principal: Principal
) -> None:
    put_shell(principal=principal, call={**SHELL, "user_id": "alice"})
    changed = {**SHELL, "user_id": "alice", "narratives": {"role": HOSTILE}}
    put_shell(principal=principal, call=changed)
    shown = page(superuser_client, "userobject", UserObject.objects.get().id, "change")
    assert shown.index("Version 2") < shown.index("Version 1")
    assert "maintainer" in shown
    assert HOSTILE not in shown


def test_objects_are_found_by_user_id_and_type(
    superuser_client: Client, principal: Principal
) -> None:
    put_shell(principal=principal, call={**SHELL, "user_id": "alice"})
    put_success_path(principal=principal, call={**SUCCESS_PATH, "user_id": "bob"})
    bob_object_id = UserObject.objects.get(user_id="bob").id
    assert "read the notes" in page(superuser_client, "userobject", q="bob")
    assert "read the notes" not in page(superuser_client, "userobject", q="alice")
    assert "read the notes" in page(superuser_client, "userobject", q=bob_object_id)
    assert "read the notes" not in page(superuser_client, "userobject", type="shell")


def test_an_outcomes_page_shows_forecast_error_proposal_and_moves(
    superuser_client: Client, principal: Principal
) -> None:
    outcome = report(principal, HOSTILE)
    shown = page(superuser_client, "outcome", str(outcome.pk), "change")
    assert HOSTILE not in shown
    assert "time 0.5 → 0.365" in shown
    assert "by hand" in shown
    assert f"{0.2 / 6:.3f}" in shown
    assert f"/admin/decisions/decision/{outcome.decision_id}/change/" in shown


def test_outcomes_are_filtered_by_their_result(
    superuser_client: Client, principal: Principal
) -> None:
    report(principal, "all went well")
    create_decision_with_outcome(principal)
    assert "all went well" in page(superuser_client, "outcome", status="success")
    assert "all went well" not in page(superuser_client, "outcome", status="none")
    assert "all went well" not in page(superuser_client, "outcome", status="failed")


def test_evidence_shows_its_reason(superuser_client: Client, principal: Principal) -> None:
    report(principal, "it took all day")
    assert "success: it took all day" in page(superuser_client, "evidence", q="alice")
