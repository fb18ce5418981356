"""A decision whose call works on something that has changed is not confirmed: its pages say so, and
a run can request a new confirmation with the present state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.test import Client

from decisions.authorization import confirmations
from decisions.authorization.decision_pages import as_text, decision_page
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import Conflict, NotAsShown
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Confirmation, Decision
from runners.models import ExecutionTarget
from runners.targets.targets import TargetFields, change_target
from runs.models import Run
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.decisions.confirmations import CONFIRMER, decision_id
from tests.support.decisions.deciders import SURFACES, Decider
from tests.support.runners.runner_fixtures import MakeRunner

pytestmark = pytest.mark.usefixtures("open_loopback", "no_home")

SCENE = "game/scene/start.txt"
REPLACE = {"path": SCENE, "find": "none", "replace": "x"}


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command use the test's database."""
    monkeypatch.setattr("runs.management.commands.confirm.prepare_home", lambda: None)


@pytest.fixture(params=SURFACES)
def decider(request: pytest.FixtureRequest, superuser_client: Client) -> Decider:
    """Return a person at each surface."""
    return Decider(request.param, superuser_client)


@pytest.fixture
def waiting(project: Path, settings: Any, principal: Principal, idle_worker: WorkerProcess) -> Run:
    """Return a run that waits for the confirmation of a write."""
    settings.WORKSPACE_POLICY = replace(settings.WORKSPACE_POLICY, write_requires_diff=False)
    (project / SCENE).write_text("none;\n")
    create_rule(RuleFields("confirm", tool="replace_in_file", reason="risky"), actor="test")
    inputs = {"calls": [{"name": "replace_in_file", "args": REPLACE}]}
    options = {"mode": "async"}
    submitted = submit_run(
        principal=principal, template_id="call_tools", inputs=inputs, options=options
    )
    idle_worker.work()
    return Run.objects.get(id=submitted.run_id)


def status_of(number: int) -> str:
    return Confirmation.objects.get(decision_id=number).status


def test_a_changed_file_is_named_and_its_write_is_refused_but_not_confirmed(
    waiting: Run, project: Path, decider: Decider
) -> None:
    number = decision_id(waiting)
    digest = decider.see(number).digests[-1]
    (project / SCENE).write_text("none;\nother\n")
    seen = decider.see(number)
    assert ("has changed" in seen.text, seen.digests) == (True, [""])
    assert "game/scene/start.txt" in seen.text  # what was requested can still be read
    assert "has changed" in decider.decide(number, "confirm", digest)
    assert status_of(number) == "waiting"
    decider.decide(number, "refuse", digest)
    assert status_of(number) == "refused"


def test_a_run_requests_the_confirmation_anew_with_the_present_state(
    waiting: Run, project: Path, decider: Decider, idle_worker: WorkerProcess
) -> None:
    first = decision_id(waiting)
    (project / SCENE).write_text("none;\nother\n")
    decider.decide(first, "renew", "")
    assert status_of(first) == "withdrawn"
    idle_worker.work()
    second = decision_id(waiting)
    assert second != first
    seen = decider.see(second)
    assert "other" in seen.text
    decider.decide(second, "confirm", seen.digests[-1])
    idle_worker.work()
    assert Run.objects.get(id=waiting.id).status == "succeeded"
    assert (project / SCENE).read_text() == "x;\nother\n"
    rows = AuditEntry.objects.filter(resource_type="decision", resource_id=str(first))
    assert list(rows.order_by("id").values_list("action", flat=True)) == [
        "confirmation.opened",
        "confirmation.withdrawn",
    ]


def test_a_decision_that_nothing_has_outdated_is_not_requested_anew(waiting: Run) -> None:
    number = decision_id(waiting)
    with pytest.raises(Conflict, match="has not changed"):
        confirmations.request_anew(decision_id=number, by="admin:ann", how="admin")
    assert status_of(number) == "waiting"
    assert decision_id(waiting) == number


def waiting_call(api: httpx.Client) -> int:
    body = {"args": {"cmd": "true"}, "idempotencyKey": "k"}
    response = api.post("/api/v1/tools/bash.exec/call", json=body)
    assert response.status_code == 202, response.text
    number: int = response.json()["details"]["decisionId"]
    return number


def move(target: ExecutionTarget) -> None:
    """Give the target another endpoint."""
    fields = TargetFields(
        tenant_id=target.tenant_id,
        workspace_id=target.workspace_id,
        name=target.name,
        kind=target.kind,
        endpoint="http://127.0.0.1:18082/execute",
        is_default=True,
    )
    change_target(target.id, fields, actor="test")


def test_a_call_on_a_changed_target_is_refused_but_not_confirmed(
    api: httpx.Client, make_runner: MakeRunner, decider: Decider
) -> None:
    target = make_runner(is_default=True)
    number = waiting_call(api)
    digest = decider.see(number).digests[-1]
    move(target)
    seen = decider.see(number)
    assert ("has changed" in seen.text, seen.digests) == (True, [""])
    assert "has changed" in decider.decide(number, "confirm", digest)
    assert status_of(number) == "waiting"
    assert "repeats the call" in seen.text
    with pytest.raises(Conflict, match="no run"):
        confirmations.request_anew(decision_id=number, by="admin:ann", how="admin")
    decider.decide(number, "refuse", "")
    assert status_of(number) == "refused"


def test_no_program_confirms_a_call_on_a_changed_target(
    api: httpx.Client, client_with: Callable[..., httpx.Client], make_runner: MakeRunner
) -> None:
    target = make_runner(is_default=True)
    number = waiting_call(api)
    move(target)
    operator = client_with(scopes=CONFIRMER, trust="local")
    answer = operator.post(f"/api/v1/decision/{number}/confirm", json={"user_id": "ann"})
    assert (answer.status_code, status_of(number)) == (409, "waiting"), answer.text
    assert "has changed" in answer.text


def test_a_repeated_call_withdraws_the_confirmation_that_it_replaces(
    api: httpx.Client, make_runner: MakeRunner
) -> None:
    target = make_runner(is_default=True)
    first = waiting_call(api)
    move(target)
    second = waiting_call(api)
    assert (status_of(first), status_of(second)) == ("withdrawn", "waiting")
    page = decision_page(Decision.objects.get(pk=second))
    assert page.digest, as_text(page)


def test_a_deleted_target_outdates_the_decision(api: httpx.Client, make_runner: MakeRunner) -> None:
    target = make_runner(is_default=True)
    number = waiting_call(api)
    target.delete()
    with pytest.raises(NotAsShown, match="has changed"):
        confirmations.confirm(decision_id=number, by="admin:ann", how="admin", shown="0" * 64)
