"""A decision's page shows what led to the call, and how the confirmed call ended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.test import Client

from decisions.audit.record import AuditEvent, record
from decisions.authorization.confirmations import open_confirmation
from decisions.identity.principals import Principal
from decisions.models import Confirmation, Decision
from runners.models import ExecutionTarget
from runs.models import Run, RunStep
from runs.queries.waiting import list_waiting

MakeDecision = Callable[..., Decision]


@pytest.fixture
def make_decision(principal: Principal) -> MakeDecision:
    """Create a decision on a call that waits for a person."""

    def make(**columns: object) -> Decision:
        base: dict[str, object] = {
            "tenant_id": principal.tenant_id,
            "workspace_id": principal.workspace_id,
            "principal_id": principal.id,
            "kind": "tool",
            "mode": "confirm",
            "tool": "write_to_file",
            "subject_digest": "d" * 64,
            "created_at": datetime.now(UTC),
        }
        decision = Decision.objects.create(**{**base, **columns})
        open_confirmation(decision)
        return decision

    return make


@pytest.fixture
def run(make_run_with_steps: Callable[..., Run]) -> Run:
    """Create a run of an agent whose third step waits."""
    return make_run_with_steps(
        ["succeeded", "succeeded", "pending"],
        status="running",
        inputs={"goal": "Write the opening hours down."},
    )


def use_confirmation(decision: Decision) -> None:
    """Confirm a decision whose call then started."""
    now = datetime.now(UTC)
    Confirmation.objects.filter(decision=decision).update(
        status="confirmed", decided_at=now, decided_by="admin:x", decided_how="admin", used_at=now
    )


def parts(client: Client, decision: Decision) -> str:
    """Return the parts of the page that change."""
    response = client.get(f"/admin/decisions/decision/{decision.pk}/live/")
    assert response.status_code == 200
    return response.content.decode()


def test_the_goal_and_the_steps_before_the_call_are_shown(
    staff_client: Callable[..., Client], make_decision: MakeDecision, run: Run
) -> None:
    decision = make_decision(run_id=run.id, step_index=2)
    client = staff_client("decisions.view_decision", "runs.view_run")
    page = client.get(f"/admin/decisions/decision/{decision.pk}/change/").content.decode()
    for text in ("What led to this call", "Write the opening hours down.", "this call"):
        assert text in page, text
    assert page.count('class="cty-step-number"') == 3


def test_the_tab_names_what_is_asked_and_the_heading_the_target(
    superuser_client: Client, make_decision: MakeDecision, make_run: Callable[..., Run]
) -> None:
    run = make_run(subject="Nightly build")
    target = ExecutionTarget.objects.create(
        id="target_1", tenant_id="t", kind="docker-runner", name="Build server"
    )
    decision = make_decision(run_id=run.id, step_index=0, tool="bash.exec", target_id=target.id)
    path = f"/admin/decisions/decision/{decision.pk}/change/"
    page = superuser_client.get(path).content.decode()
    assert "Confirm bash.exec for “Nightly build”? | " in page.split("</title>")[0]
    assert "bash.exec → Build server</h2>" in page
    assert "bash.exec → Build server" in superuser_client.get("/admin/").content.decode()
    assert list_waiting().rows[0].title == "bash.exec → Build server"
    use_confirmation(decision)
    page = superuser_client.get(path).content.decode()
    assert "Confirmed: bash.exec for “Nightly build” | " in page.split("</title>")[0]
    message = make_decision(kind="chat", tool="", arguments={"message": "Delete all."})
    page = superuser_client.get(f"/admin/decisions/decision/{message.pk}/change/").content.decode()
    assert "Confirm the message “Delete all.”?" in page.split("</title>")[0]


def test_who_may_not_view_runs_sees_nothing_of_the_run(
    staff_client: Callable[..., Client], make_decision: MakeDecision, run: Run
) -> None:
    decision = make_decision(run_id=run.id, step_index=2)
    client = staff_client("decisions.view_decision")
    for path in ("change", "live"):
        page = client.get(f"/admin/decisions/decision/{decision.pk}/{path}/").content.decode()
        assert "opening hours" not in page
        assert "pages.example" not in page


def test_the_list_shows_the_runs_subject_to_who_may_view_runs(
    staff_client: Callable[..., Client], make_decision: MakeDecision, run: Run
) -> None:
    Run.objects.update(subject="Write the opening hours down.")
    make_decision(run_id=run.id, step_index=2)
    inbox = "/admin/decisions/decision/?status=waiting"
    reader, other = ["decisions.view_decision", "runs.view_run"], ["decisions.view_decision"]
    assert "opening hours" in staff_client(*reader).get(inbox).content.decode()
    page = staff_client(*other).get(inbox).content.decode()
    assert "opening hours" not in page
    assert run.id[-6:] in page


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"status": "succeeded", "output": {"bytes": 12}}, "&quot;bytes&quot;: 12"),
        (
            {"status": "failed", "error": {"errorCode": "DISK_FULL", "message": "No room."}},
            "DISK_FULL",
        ),
        ({"status": "succeeded", "output": {"error": {"code": "E1", "message": "m"}}}, "E1 m"),
    ],
)
def test_the_end_of_a_confirmed_call_is_shown(
    superuser_client: Client,
    make_decision: MakeDecision,
    run: Run,
    columns: dict[str, object],
    text: str,
) -> None:
    decision = make_decision(run_id=run.id, step_index=2)
    RunStep.objects.filter(run=run, index=2).update(**columns)
    assert "How the call ended" not in parts(superuser_client, decision)
    use_confirmation(decision)
    assert "How the call ended" in parts(superuser_client, decision)
    assert text in parts(superuser_client, decision)


@pytest.mark.parametrize(
    ("action", "word"), [("tool.succeeded", "succeeded"), ("tool.failed", "failed")]
)
def test_the_end_of_a_direct_call_is_found_in_the_audit_log(
    superuser_client: Client, make_decision: MakeDecision, action: str, word: str
) -> None:
    decision = make_decision()
    use_confirmation(decision)
    assert "How the call ended" not in parts(superuser_client, decision)
    scope = decision.tenant_id, decision.workspace_id
    for digest in ("other", decision.subject_digest):
        details = {"argsDigest": digest, "tool": "write_to_file"}
        record(AuditEvent(action, decision.principal_id, "tool", "write_to_file", *scope, details))
    page = parts(superuser_client, decision)
    assert "How the call ended" in page
    assert f">{word}<" in page


def test_the_buttons_of_a_waiting_decision_are_not_refreshed(
    superuser_client: Client, make_decision: MakeDecision
) -> None:
    decision = make_decision()
    assert 'data-part="answers"' not in parts(superuser_client, decision)
    use_confirmation(decision)
    assert '<div data-part="answers"></div>' in parts(superuser_client, decision)
