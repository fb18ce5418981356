"""Direct calls that need a person's confirmation: by the services and by REST."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import httpx
import pytest

from decisions.authorization.confirmations import refuse
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import ConfirmationRequired, Conflict, PolicyDenied
from decisions.identity.principals import Principal, admin_principal
from decisions.models import AuditEntry, Confirmation, Decision
from runs.models import Run, RunKey
from runs.submission.cancel import cancel_run
from runs.submission.retry import retry_run
from runs.submission.submit import submit_run
from runs.submission.submitted_run import SubmittedRun
from tests.support.decisions.confirmations import confirm
from tests.support.runs.concurrent_calls import at_once


@pytest.fixture
def confirm_rule(principal: Principal) -> None:
    """Make submits of the test template require a confirmation."""
    fields = RuleFields(
        "confirm", tool="run_task_template", target_id="test_stepwise", reason="test"
    )
    create_rule(fields, actor="t")


@pytest.fixture
def submit_stepwise(principal: Principal, confirm_rule: None) -> Callable[..., SubmittedRun]:
    """Submit a run of the test template: `submit_stepwise("ok", key="k")`."""

    def make(*do: str, key: str | None = "k", caller: Principal = principal) -> SubmittedRun:
        options = {"mode": "async", **({"idempotencyKey": key} if key else {})}
        inputs = {"do": list(do or ("ok",))}
        return submit_run(
            principal=caller, template_id="test_stepwise", inputs=inputs, options=options
        )

    return make


def expect_confirmation(call: Callable[..., Any], *args: Any, **options: Any) -> int:
    with pytest.raises(ConfirmationRequired) as raised:
        call(*args, **options)
    assert raised.value.details["expiresAt"] > datetime.now(UTC).timestamp() * 1000
    decision_id: int = raised.value.details["decisionId"]
    return decision_id


def decide(decision_id: int, verdict: Callable[..., Confirmation] = confirm) -> None:
    verdict(decision_id=decision_id, by="admin:ann", how="admin")


def test_the_call_does_not_run_and_creates_one_confirmation(
    submit_stepwise: Callable[..., SubmittedRun],
) -> None:
    assert expect_confirmation(submit_stepwise) == expect_confirmation(submit_stepwise)
    assert not Run.objects.exists()
    assert not RunKey.objects.exists()
    decision = Decision.objects.get()
    assert (decision.kind, decision.tool, decision.target_id) == (
        "tool",
        "run_task_template",
        "test_stepwise",
    )
    assert decision.arguments["inputs"] == {"do": ["ok"]}


def test_after_confirmation_the_same_call_with_the_same_key_runs_once(
    submit_stepwise: Callable[..., SubmittedRun],
) -> None:
    decide(expect_confirmation(submit_stepwise))
    first, again = submit_stepwise(), submit_stepwise()
    assert (first.run_id, first.deduplicated) == (again.run_id, False)
    assert again.deduplicated
    assert Run.objects.count() == 1


def test_fifty_concurrent_confirmed_calls_make_one_run(
    submit_stepwise: Callable[..., SubmittedRun],
) -> None:
    decide(expect_confirmation(submit_stepwise))
    assert len({one.run_id for one in at_once([submit_stepwise] * 50)}) == 1
    assert Run.objects.count() == 1


def test_fifty_concurrent_calls_create_one_confirmation(
    submit_stepwise: Callable[..., SubmittedRun],
) -> None:
    assert len(set(at_once([lambda: expect_confirmation(submit_stepwise)] * 50))) == 1
    assert Confirmation.objects.count() == 1


def test_different_arguments_need_a_confirmation_of_their_own(
    submit_stepwise: Callable[..., SubmittedRun],
) -> None:
    first = expect_confirmation(submit_stepwise)
    decide(first)
    assert expect_confirmation(submit_stepwise, "sleep:1") != first
    assert not Run.objects.exists()


def test_an_approval_does_not_count_for_another_caller(
    submit_stepwise: Callable[..., SubmittedRun], principal: Principal
) -> None:
    other = admin_principal("x", tenant_id=principal.tenant_id, workspace_id=principal.workspace_id)
    agent = Principal(
        "token:tok_other", other.tenant_id, other.workspace_id, principal.scopes, "local"
    )
    first = expect_confirmation(submit_stepwise)
    decide(first)
    assert expect_confirmation(submit_stepwise, caller=agent) != first


def test_without_a_key_an_approval_is_valid_for_one_call(
    submit_stepwise: Callable[..., SubmittedRun],
) -> None:
    first = expect_confirmation(submit_stepwise, key=None)
    decide(first)
    assert not submit_stepwise(key=None).deduplicated
    assert expect_confirmation(submit_stepwise, key=None) != first


def test_one_of_many_calls_without_a_key_uses_the_approval(
    submit_stepwise: Callable[..., SubmittedRun],
) -> None:
    decide(expect_confirmation(submit_stepwise, key=None))

    def submit_once() -> None:
        with suppress(Conflict, ConfirmationRequired):
            submit_stepwise(key=None)

    at_once([submit_once] * 10)
    assert Run.objects.count() == 1


class Tomorrow:
    """A clock that is a day ahead."""

    @staticmethod
    def now(zone: tzinfo) -> datetime:
        return datetime.now(zone) + timedelta(days=1)


def test_an_unused_approval_expires_and_needs_a_new_confirmation(
    submit_stepwise: Callable[..., SubmittedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = expect_confirmation(submit_stepwise)
    decide(first)
    monkeypatch.setattr("decisions.authorization.authorize.datetime", Tomorrow)
    assert expect_confirmation(submit_stepwise) != first
    assert not Run.objects.exists()


def test_a_refused_call_stays_refused(submit_stepwise: Callable[..., SubmittedRun]) -> None:
    decide(expect_confirmation(submit_stepwise), refuse)
    for _ in range(2):
        with pytest.raises(PolicyDenied) as raised:
            submit_stepwise()
        assert raised.value.details["because"] == "refused"
    assert Decision.objects.count() == 1


def test_a_call_with_an_expired_confirmation_is_denied_as_expired(
    submit_stepwise: Callable[..., SubmittedRun],
) -> None:
    expect_confirmation(submit_stepwise)
    Confirmation.objects.update(expires_at=datetime.now(UTC) - timedelta(seconds=1))
    with pytest.raises(PolicyDenied) as raised:
        submit_stepwise()
    assert raised.value.details["because"] == "expired"
    assert (
        expect_confirmation(submit_stepwise, key="another") != Decision.objects.order_by("pk")[0].pk
    )


def test_a_denied_call_is_refused_and_audited(principal: Principal, submit: Any) -> None:
    create_rule(RuleFields("deny", tool="run_task_template", reason="closed"), actor="t")
    with pytest.raises(PolicyDenied, match="closed"):
        submit("ok")
    entry = AuditEntry.objects.get(action="policy.denied")
    assert (entry.actor, entry.resource_id) == (principal.id, "run_task_template")
    assert not Run.objects.exists()


def test_a_retry_needs_a_confirmation_as_a_submit_does(
    confirm_rule: None, make_run: Callable[..., Run], principal: Principal
) -> None:
    old = make_run(status="failed")
    decide(expect_confirmation(retry_run, principal=principal, run_id=old.id))
    assert retry_run(principal=principal, run_id=old.id).run_id != old.id


def test_a_cancel_may_need_a_confirmation_too(
    make_run: Callable[..., Run], principal: Principal
) -> None:
    create_rule(RuleFields("confirm", tool="cancel_task_run", reason="test"), actor="t")
    run = make_run()
    decision_id = expect_confirmation(cancel_run, principal=principal, run_id=run.id)
    assert Run.objects.get(id=run.id).status == "queued"
    decide(decision_id)
    assert cancel_run(principal=principal, run_id=run.id)["success"]


def test_an_approved_cancel_without_effect_does_not_use_the_approval(
    make_run: Callable[..., Run], principal: Principal
) -> None:
    create_rule(RuleFields("confirm", tool="cancel_task_run", reason="test"), actor="t")
    run = make_run()
    decide(expect_confirmation(cancel_run, principal=principal, run_id=run.id))
    Run.objects.filter(id=run.id).update(
        status="succeeded", ready=False, ended_at=datetime.now(UTC)
    )
    assert not cancel_run(principal=principal, run_id=run.id)["success"]
    assert Confirmation.objects.get().used_at is None


def test_an_operator_of_the_admin_site_needs_no_confirmation(
    submit_stepwise: Callable[..., SubmittedRun], principal: Principal
) -> None:
    workspace = {"tenant_id": principal.tenant_id, "workspace_id": principal.workspace_id}
    assert submit_stepwise(caller=admin_principal("ann", **workspace)).run_id


def test_a_secret_in_the_arguments_is_not_stored(principal: Principal, confirm_rule: None) -> None:
    secret = "hunter2-hunter2"
    create_rule(RuleFields("confirm", tool="run_task_template", reason="test"), actor="t")
    field = {
        "name": "pin",
        "value": secret,
        "secret": True,
        "locator": {"mode": "semantic", "query": "pin"},
    }
    inputs = {"startUrl": "https://example.org/", "fields": [field]}
    expect_confirmation(
        submit_run, principal=principal, template_id="submit_and_verify", inputs=inputs
    )
    rows = [*Decision.objects.values(), *AuditEntry.objects.values()]
    assert Decision.objects.count() == 1
    assert secret not in str(rows)


def test_rest_answers_202_and_runs_the_call_after_confirmation(
    api: httpx.Client, confirm_rule: None
) -> None:
    body = {
        "templateId": "test_stepwise",
        "inputs": {"do": ["ok"]},
        "options": {"mode": "async", "idempotencyKey": "k"},
    }
    waiting = api.post("/api/v1/runs", json=body)
    assert (waiting.status_code, waiting.json()["errorCode"]) == (202, "CONFIRMATION_REQUIRED")
    assert not Run.objects.exists()
    decide(waiting.json()["details"]["decisionId"])
    done = api.post("/api/v1/runs", json=body)
    assert (done.status_code, done.json()["status"]) == (202, "queued")
    assert Run.objects.get().id == done.json()["runId"]
