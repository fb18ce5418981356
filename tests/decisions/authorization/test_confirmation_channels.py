"""How people decide: in the admin's inbox, by a signed link, or by the command; no other way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from decisions.authorization.confirmation_links import confirmation_link, sign_in_link
from decisions.authorization.confirmations import MAY_DECIDE, open_confirmation, refuse
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.authorization.sealed_arguments import seal_arguments
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Confirmation, Decision, PolicyRule
from decisions.pages.confirmation import TRIES_RECORDED
from runs.models import Run
from runs.worker.worker import WorkerProcess
from tests.support.decisions.confirmations import (
    answer_confirmation,
    decision_id,
    digest_shown,
    reload_run,
)
from tests.support.decisions.continuity import create_decision

MakeClient = Callable[..., Client]


@pytest.fixture
def waiting_run(worker: WorkerProcess, submit_calls: Callable[..., Run]) -> Run:
    """Return a run that waits for a person."""
    run = submit_calls("risk:<script>b</script>")
    worker.work()
    return reload_run(run)


def decision_url(run: Run, *rest: str) -> str:
    return "/".join(["/admin/decisions/decision", str(decision_id(run)), *rest, ""])


def link() -> str:
    return confirmation_link(Confirmation.objects.get())


def id_of_only_decision() -> int:
    return Confirmation.objects.get().decision_id


def confirming() -> dict[str, str | None]:
    """Return the form that a link's page has after its last fragment."""
    return {"answer": "confirm", "shown": digest_shown(id_of_only_decision())}


def status() -> str:
    return Confirmation.objects.get().status


def test_the_inbox_shows_waiting_decisions(superuser_client: Client, waiting_run: Run) -> None:
    shown = superuser_client.get("/admin/decisions/decision/?status=waiting").content.decode()
    assert "test_risk" in shown
    assert "it is risky" in shown
    detail = superuser_client.get(decision_url(waiting_run, "change")).content.decode()
    assert "&lt;script&gt;b" in detail
    assert "<script>b" not in detail
    assert "rule_" in detail


def test_a_run_resumes_when_a_person_confirms_it_in_the_inbox(
    superuser_client: Client, waiting_run: Run, worker: WorkerProcess, notes: Callable[[], str]
) -> None:
    form = {"shown": digest_shown(decision_id(waiting_run))}
    assert superuser_client.post(decision_url(waiting_run, "confirm"), form).status_code == 302
    worker.work()
    assert (reload_run(waiting_run).status, notes()) == ("succeeded", "<script>b</script>")
    entry = AuditEntry.objects.get(action="confirmation.confirmed")
    assert (entry.actor, entry.metadata["how"]) == ("admin:boss", "admin")


def test_a_get_of_an_inbox_action_does_nothing(superuser_client: Client, waiting_run: Run) -> None:
    for action in ("confirm", "refuse"):
        assert superuser_client.get(decision_url(waiting_run, action)).status_code == 405
    assert status() == "waiting"


def test_a_user_with_view_permission_cannot_decide(
    staff_client: MakeClient, waiting_run: Run
) -> None:
    viewer = staff_client("decisions.view_decision")
    shown = viewer.get(decision_url(waiting_run, "change")).content.decode()
    assert "/confirm/" not in shown
    for action in ("confirm", "refuse"):
        assert viewer.post(decision_url(waiting_run, action)).status_code == 403
    assert status() == "waiting"


def test_an_anonymous_user_cannot_decide_in_the_inbox(waiting_run: Run) -> None:
    assert Client().post(decision_url(waiting_run, "confirm")).status_code == 302
    assert status() == "waiting"


def test_a_cross_site_post_is_refused(superuser_client: Client, waiting_run: Run) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = superuser_client.cookies
    assert strict.post(decision_url(waiting_run, "confirm")).status_code == 403
    assert Client(enforce_csrf_checks=True).post(link(), {"answer": "confirm"}).status_code == 403
    assert status() == "waiting"


def test_a_late_post_shows_the_earlier_decision(superuser_client: Client, waiting_run: Run) -> None:
    number = decision_id(waiting_run)
    refuse(decision_id=number, by="admin:ann", how="admin")
    response = superuser_client.post(f"/admin/decisions/decision/{number}/confirm/", follow=True)
    assert f"Decision {number} is refused already." in response.content.decode()
    assert status() == "refused"


def test_a_link_shows_on_get_and_decides_on_post(
    waiting_run: Run, worker: WorkerProcess, notes: Callable[[], str]
) -> None:
    shown = Client().get(link())
    assert (shown.status_code, status()) == (200, "waiting")
    assert "&lt;script&gt;b" in shown.content.decode()
    assert Client().post(link(), confirming()).status_code == 200
    worker.work()
    assert reload_run(waiting_run).status == "succeeded"
    assert Confirmation.objects.get().decided_by == "link"


def test_a_link_sends_its_address_as_referrer_to_its_own_site_alone(waiting_run: Run) -> None:
    """With `no-referrer` a browser would post from the origin `null`."""
    assert Client().get(link())["Referrer-Policy"] == "same-origin"


def test_a_link_can_refuse_and_records_the_signed_in_user(
    superuser_client: Client, waiting_run: Run, worker: WorkerProcess
) -> None:
    superuser_client.post(link(), {"answer": "refuse"})
    worker.work()
    assert (reload_run(waiting_run).error or {})["details"]["because"] == "refused"
    assert Confirmation.objects.get().decided_by == "admin:boss"


def host_link(settings: Any) -> str:
    """Return the path of the link that an agent's host gets."""
    settings.PUBLIC_URL = "https://continuity.example"
    return urlsplit(sign_in_link(id_of_only_decision(), "") or "").path


def test_an_operator_decides_by_the_link_of_a_host(
    staff_client: MakeClient, waiting_run: Run, settings: Any
) -> None:
    operator = staff_client(MAY_DECIDE)
    assert operator.post(host_link(settings), confirming()).status_code == 200
    confirmation = Confirmation.objects.get()
    assert (confirmation.status, confirmation.decided_by) == ("confirmed", "admin:staff-0")


def test_staff_without_the_permission_cannot_use_the_link_of_a_host(
    staff_client: MakeClient, waiting_run: Run, settings: Any
) -> None:
    viewer = staff_client("decisions.view_decision")
    assert viewer.get(host_link(settings)).status_code == 403
    assert viewer.post(host_link(settings), confirming()).status_code == 403
    assert status() == "waiting"


def test_former_staff_cannot_use_the_link_of_a_host(
    staff_client: MakeClient, waiting_run: Run, settings: Any
) -> None:
    """Their session is open still, and their account keeps its permissions."""
    former = staff_client(MAY_DECIDE)
    User.objects.update(is_staff=False)
    assert former.get(host_link(settings)).status_code == 403
    assert former.post(host_link(settings), confirming()).status_code == 403
    assert status() == "waiting"


@pytest.mark.parametrize("answer", ["", "yes", "confirm refuse"])
def test_a_link_accepts_no_other_answer(waiting_run: Run, answer: str) -> None:
    assert Client().post(link(), {"answer": answer}).status_code == 400
    assert status() == "waiting"


def test_a_link_with_a_wrong_signature_decides_nothing(waiting_run: Run) -> None:
    for broken in (link()[:-1] + "x", link()[:-64] + "0" * 64, link().replace("cnf_", "cnf_0")):
        assert Client().get(broken).status_code == 404
        assert Client().post(broken, {"answer": "confirm"}).status_code == 404
    assert status() == "waiting"
    assert AuditEntry.objects.filter(action="confirmation.tried", actor="anonymous").exists()


@pytest.mark.parametrize("answer", ["confirm", "refuse"])
def test_a_link_shows_the_call_only_while_its_decision_waits(waiting_run: Run, answer: str) -> None:
    assert "test_risk" in Client().get(link()).content.decode()
    decided = Client().post(link(), {**confirming(), "answer": answer}).content.decode()
    for shown in (decided, Client().get(link()).content.decode()):
        assert f"Decision</dt><dd>{id_of_only_decision()}" in shown
        assert "test_risk" not in shown
        assert "script" not in shown
        assert waiting_run.id not in shown


def test_wrong_signatures_add_a_limited_number_of_audit_entries(waiting_run: Run) -> None:
    tried = AuditEntry.objects.filter(action="confirmation.tried")
    for _ in range(TRIES_RECORDED + 3):
        assert Client().get(link()[:-1] + "x").status_code == 404
    assert tried.count() == TRIES_RECORDED
    assert "more" in tried.latest("id").metadata


def test_a_wrong_signature_for_an_ended_confirmation_is_not_audited(waiting_run: Run) -> None:
    answer_confirmation(waiting_run)
    assert Client().get(link()[:-1] + "x").status_code == 404
    assert not AuditEntry.objects.filter(action="confirmation.tried").exists()


@pytest.mark.parametrize("name", ["%00", "cnf_%00", "cnf_", "cnf_%ED%A0%80", "cnf_" + "x" * 5000])
def test_a_link_with_an_unknown_id_is_not_found(principal: Principal, name: str) -> None:
    assert Client().get(f"/confirm/{name}/x").status_code == 404
    assert Client().post(f"/confirm/{name}/x", {"answer": "confirm"}).status_code == 404


def test_an_expired_link_shows_that_it_has_expired(waiting_run: Run) -> None:
    address = link()
    Confirmation.objects.update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    assert "in time" in Client().get(address).content.decode()
    assert Client().post(address, {"answer": "confirm"}).status_code == 409
    assert status() == "expired"


def test_no_row_that_an_agent_can_read_contains_the_link(
    waiting_run: Run, principal: Principal
) -> None:
    signature = link().rpartition("/")[2]
    rows = [*Run.objects.values(), *AuditEntry.objects.values(), *Confirmation.objects.values()]
    assert signature not in str(rows)


def test_the_command_confirms_and_refuses(
    waiting_run: Run, worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.management.commands.confirm.prepare_home", lambda: None)
    out, number = StringIO(), decision_id(waiting_run)
    call_command("confirm", str(number), "--refuse", stdout=out)
    assert out.getvalue() == f"decision {number} refused\n"
    with pytest.raises(CommandError, match="refused already"):
        call_command("confirm", str(number), stdout=out, stderr=StringIO())
    with pytest.raises(CommandError, match="No decision 999"):
        call_command("confirm", "999", stdout=out, stderr=StringIO())


@pytest.fixture
def message_decision(principal: Principal) -> Decision:
    """Return a decision about a message that a person has to confirm."""
    decision = create_decision(principal, mode="confirm")
    text = {"message": "Delete the <b>orders</b> table", "slots": {"target": "prod"}}
    decision.arguments, decision.sealed_arguments = text, seal_arguments(decision, text)
    decision.save()
    open_confirmation(decision)
    return decision


def test_every_page_shows_the_message_to_confirm(
    superuser_client: Client, message_decision: Decision
) -> None:
    inbox = f"/admin/decisions/decision/{message_decision.pk}/change/"
    for address in (link(), inbox, "/admin/decisions/decision/?status=waiting"):
        assert "Delete the &lt;b&gt;orders" in superuser_client.get(address).content.decode(), (
            address
        )
    assert "Message:" in superuser_client.get(link()).content.decode()
    assert ">Message<" in superuser_client.get(inbox).content.decode()


def test_the_command_shows_the_message(
    message_decision: Decision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.management.commands.confirm.prepare_home", lambda: None)
    out = StringIO()
    call_command("confirm", str(message_decision.pk), stdout=out)
    assert "  | Delete the <b>orders</b> table" in out.getvalue()
    assert status() == "waiting"


def test_the_dashboard_lists_waiting_decisions(superuser_client: Client, waiting_run: Run) -> None:
    assert (
        f"/admin/decisions/decision/{decision_id(waiting_run)}/change/"
        in superuser_client.get("/admin/").content.decode()
    )
    answer_confirmation(waiting_run)
    assert "Waits for a person" not in superuser_client.get("/admin/").content.decode()


def post_twice(client: Client, address: str, form: dict[str, str]) -> None:
    """Post a rule's form, and then what its second page says."""
    digest = client.post(address, form).context["digest"]
    assert client.post(address, {**form, "shown": digest}).status_code == 302


def test_a_rule_is_created_changed_and_retired_in_the_admin(superuser_client: Client) -> None:
    form = {
        "verdict": "deny",
        "tool": "read_page",
        "target_id": "*",
        "scope": "everywhere|",
        "reason": "no forms",
    }
    post_twice(superuser_client, "/admin/decisions/policyrule/new/", form)
    rule = PolicyRule.objects.get()
    edit = f"/admin/decisions/policyrule/{rule.key}/edit/"
    assert "no forms" in superuser_client.get(edit).content.decode()
    post_twice(superuser_client, edit, {**form, "verdict": "confirm"})
    shown = superuser_client.get(f"/admin/decisions/policyrule/{rule.key}/change/").content.decode()
    assert shown.count("no forms") >= 2
    post_twice(superuser_client, f"/admin/decisions/policyrule/{rule.key}/retire/", {})
    assert not PolicyRule.objects.filter(retired_at__isnull=True).exists()
    assert [row.created_by for row in PolicyRule.objects.order_by("version")] == ["admin:boss"] * 2


def test_an_invalid_rule_is_reported_in_the_form(superuser_client: Client) -> None:
    create_rule(RuleFields("deny", tool="fill_field", reason="test"), actor="t")
    form = {
        "verdict": "allow",
        "tool": "fill_field",
        "target_id": "*",
        "scope": "everywhere|",
        "reason": "x",
    }
    assert (
        "has the same scope, tool"
        in superuser_client.post("/admin/decisions/policyrule/new/", form).content.decode()
    )
    assert PolicyRule.objects.count() == 1


def test_a_user_with_view_permission_cannot_change_rules(staff_client: MakeClient) -> None:
    viewer = staff_client("decisions.view_policyrule")
    rule = create_rule(RuleFields("deny", tool="fill_field", reason="test"), actor="t")
    form = {"verdict": "allow", "tool": "*", "scope": "everywhere|"}
    assert viewer.post("/admin/decisions/policyrule/new/", form).status_code == 403
    for action in ("edit", "retire"):
        response = viewer.post(f"/admin/decisions/policyrule/{rule.key}/{action}/", form)
        assert response.status_code == 403
    assert PolicyRule.objects.get().retired_at is None
