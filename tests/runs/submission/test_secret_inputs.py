"""Secret inputs: encrypted separately, passed to the steps that need them, and deleted on time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from decisions.authorization.decision_pages import decision_page
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import ConfirmationRequired
from decisions.foundation.presentation.visible_text import as_lines
from decisions.foundation.validation.json_schema import has_secret_fields, secret_paths
from decisions.identity.principals import Principal
from decisions.models import Decision
from runs.models import Run, RunSecret
from runs.submission.cancel import cancel_run
from runs.submission.secret_inputs import (
    delete_leftover_secrets,
    read_secrets,
    sealed_row,
    split_secrets,
)
from runs.submission.submit import submit_run
from runs.submission.submitted_run import SubmittedRun
from runs.task_templates.base import StepPlan
from runs.task_templates.registry import get_template
from runs.worker.worker import WorkerProcess
from tests.support.decisions.confirmations import confirm

INPUTS: dict[str, Any] = {
    "startUrl": "https://example.com/login",
    "credentials": {"username": "alice", "password": "hunter22"},
    "fields": {"mode": "selector", "usernameSelector": "#u", "passwordSelector": "#p"},
}


def submit_login(principal: Principal, **options: Any) -> SubmittedRun:
    return submit_run(
        principal=principal,
        template_id="login_keep_session",
        inputs=INPUTS,
        options={"mode": "async", **options},
    )


def test_secrets_are_removed_from_the_inputs_and_encrypted(principal: Principal) -> None:
    run = Run.objects.get(id=submit_login(principal).run_id)
    assert run.inputs["credentials"] == {"username": "***", "password": "***"}
    assert run.inputs["startUrl"] == INPUTS["startUrl"]
    row = RunSecret.objects.get()
    assert b"hunter" not in bytes(row.sealed)
    secrets = read_secrets(run)
    assert secrets.of_step(4) == {
        "credentials.username": "alice",
        "credentials.password": "hunter22",
    }
    assert secrets.of_step(5) == {}
    assert "hunter" not in repr(secrets)


def test_the_inputs_of_the_caller_are_not_modified() -> None:
    template = get_template("login_keep_session")
    assert template is not None
    shown, secrets = split_secrets(template, INPUTS)
    assert INPUTS["credentials"]["password"] == "hunter22"
    assert (shown["credentials"]["password"], len(secrets)) == ("***", 2)


def test_the_end_of_a_run_deletes_its_secrets_in_the_same_commit(principal: Principal) -> None:
    submitted = submit_login(principal)
    cancel_run(principal=principal, run_id=submitted.run_id)
    assert not RunSecret.objects.exists()


def give_secret(run: Run, value: str) -> None:
    """Give a queued run a secret input that only its first step needs."""
    plan = [StepPlan("a", {}, needs_secrets=True), StepPlan("b", {})]
    sealed_row(run.id, {"code": value}, plan).save()
    Run.objects.filter(id=run.id).update(holds_secrets=True)


def test_secrets_are_deleted_after_the_last_step_that_needs_them(
    worker: WorkerProcess, submit_calls: Callable[..., Run]
) -> None:
    run = submit_calls("note:a", "risk:b")
    give_secret(run, "hunter22")
    worker.work()  # the first step ends, the second one waits for a person
    assert Decision.objects.get().run_id == run.id
    assert not RunSecret.objects.exists()


def test_an_argument_that_equals_a_secret_is_masked_in_records_and_exact_for_who_decides(
    worker: WorkerProcess, submit_calls: Callable[..., Run]
) -> None:
    give_secret(submit_calls("risk:rm -r victim"), "rm -r victim")
    worker.work()
    decision = Decision.objects.get()
    assert decision.arguments["text"] == "***"
    (fragment,) = [one for one in decision_page(decision).fragments if one.name == "text"]
    assert as_lines(fragment.parts) == "rm -r victim"


def test_a_person_who_confirms_a_submit_sees_the_names_of_its_secrets(
    principal: Principal,
) -> None:
    create_rule(RuleFields("confirm", tool="run_task_template", reason="risky"), actor="test")
    with pytest.raises(ConfirmationRequired):
        submit_login(principal)
    decision = Decision.objects.get()
    shown = {one.name: as_lines(one.parts) for one in decision_page(decision).fragments}
    assert shown["inputs.credentials.password"] == "⟨secret credentials.password⟩"
    assert "hunter22" not in str(shown)


def test_a_confirmation_of_a_submit_is_for_its_secrets_alone(principal: Principal) -> None:
    create_rule(RuleFields("confirm", tool="run_task_template", reason="risky"), actor="test")
    with pytest.raises(ConfirmationRequired):
        submit_login(principal)
    confirm(decision_id=Decision.objects.get().pk, by="admin:a", how="admin")
    other = {**INPUTS, "credentials": {"username": "alice", "password": "another"}}
    with pytest.raises(ConfirmationRequired):
        submit_run(
            principal=principal,
            template_id="login_keep_session",
            inputs=other,
            options={"mode": "async"},
        )
    submit_login(principal)
    assert Run.objects.count() == 1


def test_the_sweeper_deletes_secrets_that_remain_after_the_end(principal: Principal) -> None:
    first, second = submit_login(principal), submit_login(principal)
    sealed = RunSecret.objects.get(run_id=first.run_id).sealed
    cancel_run(principal=principal, run_id=first.run_id)
    RunSecret.objects.create(run_id=first.run_id, sealed=sealed, last_step=3)
    assert delete_leftover_secrets() == 1
    assert RunSecret.objects.get().run_id == second.run_id


def test_repeated_inputs_match_even_with_other_credentials(principal: Principal) -> None:
    first = submit_login(principal, idempotencyKey="k")
    changed = {**INPUTS, "credentials": {"username": "alice", "password": "other"}}
    again = submit_run(
        principal=principal,
        template_id="login_keep_session",
        inputs=changed,
        options={"mode": "async", "idempotencyKey": "k"},
    )
    assert (again.run_id, again.inputs_match) == (first.run_id, True)
    other_site = submit_run(
        principal=principal,
        template_id="login_keep_session",
        inputs={**INPUTS, "startUrl": "https://example.org/"},
        options={"mode": "async", "idempotencyKey": "k"},
    )
    assert other_site.inputs_match is False
    assert RunSecret.objects.count() == 1


@pytest.mark.parametrize(
    ("schema", "value", "paths"),
    [
        ({"properties": {"a": {"writeOnly": True}}}, {"a": "x", "b": "y"}, {("a",)}),
        (
            {"properties": {"a": {"$ref": "#/$defs/s"}}, "$defs": {"s": {"writeOnly": True}}},
            {"a": "x"},
            {("a",)},
        ),
        (
            {"properties": {"a": {"anyOf": [{"type": "null"}, {"writeOnly": True}]}}},
            {"a": "x"},
            {("a",)},
        ),
        (
            {"items": {"properties": {"v": {"writeOnly": True}}}},
            [{"v": "x"}, {"w": 1}, {"v": "y"}],
            {(0, "v"), (2, "v")},
        ),
        ({"properties": {"a": {}}}, {"a": "x"}, set()),
    ],
)
def test_marked_fields_are_found_anywhere_in_the_schema(
    schema: dict[str, Any], value: Any, paths: set[tuple[str | int, ...]]
) -> None:
    assert secret_paths(schema, value) == paths
    assert has_secret_fields(schema) is bool(paths)
