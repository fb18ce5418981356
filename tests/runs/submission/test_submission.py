"""A submit commits the run and all its rows, or leaves nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection
from django.test import override_settings

from decisions.audit.record import is_genuine
from decisions.authorization.policy import SUBMIT
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import (
    Forbidden,
    InvalidInput,
    PolicyDenied,
    Refused,
    SessionNotFound,
    TemplateNotFound,
    TemplateVersionUnsupported,
    TrustNotAllowed,
)
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runners.models import BrowserSession
from runs.models import Run, RunEvent, RunKey, RunStep
from runs.queue import wakeups
from runs.submission.submit import submit_run

Submit = Callable[..., str]
sent: list[tuple[str, str]] = []


def record_wakeup(queue: str, run_id: str) -> None:
    """Stand in for the broker: record the wake-up, and that its run is committed."""
    assert not connection.in_atomic_block
    assert Run.objects.filter(id=run_id).exists()
    sent.append((queue, run_id))


def fail_to_send(queue: str, run_id: str) -> None:
    """Stand in for an unavailable broker."""
    raise ConnectionRefusedError


def test_one_submit_writes_every_row_of_the_run(submit: Submit) -> None:
    run_id = submit("ok", "ok", options={"idempotencyKey": "k"})
    run = Run.objects.get(id=run_id)
    assert (run.status, run.total_steps, run.last_seq, run.epoch) == ("queued", 2, 1, 0)
    steps = RunStep.objects.filter(run=run).order_by("index")
    assert [(step.status, step.effect_key) for step in steps] == [
        ("pending", f"{run_id}:0"),
        ("pending", f"{run_id}:1"),
    ]
    event = RunEvent.objects.get(run=run)
    assert (event.seq, event.type) == (1, "run.queued")
    assert RunKey.objects.get(run_id=run_id).key == "k"
    entry = AuditEntry.objects.get(resource_id=run_id)
    assert entry.action == "run.submitted"
    assert is_genuine(entry)


def test_the_idempotency_key_is_not_stored_in_the_options(submit: Submit) -> None:
    run_id = submit(options={"idempotencyKey": "secret-like", "timeoutMs": 5000})
    assert Run.objects.get(id=run_id).options == {"mode": "async", "timeoutMs": 5000}


TABLES = {
    "runs_run": "id IS NOT NULL",
    "runs_runstep": "id IS NOT NULL",
    "runs_runevent": "id IS NOT NULL",
    "decisions_auditentry": "id IS NOT NULL",
    "runs_runkey": "id IS NOT NULL",
}


@pytest.fixture
def break_table_for_test() -> Any:
    """Make a table refuse every insert, with a trigger, for the rest of the test."""
    broken: list[str] = []

    def break_table(table: str) -> None:
        broken.append(table)
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute(
                    f"CREATE TRIGGER broken_{table} BEFORE INSERT ON {table}"
                    " BEGIN SELECT RAISE(ABORT, 'broken by a test'); END"
                )
            else:
                cursor.execute(
                    "CREATE OR REPLACE FUNCTION break_it() RETURNS trigger LANGUAGE plpgsql AS"
                    " $$ BEGIN RAISE EXCEPTION 'broken by a test'; END $$"
                )
                cursor.execute(
                    f"CREATE TRIGGER broken_{table} BEFORE INSERT ON {table}"
                    " FOR EACH ROW EXECUTE FUNCTION break_it()"
                )

    yield break_table
    with connection.cursor() as cursor:
        for table in broken:
            on_table = f" ON {table}" if connection.vendor != "sqlite" else ""
            cursor.execute(f"DROP TRIGGER broken_{table}{on_table}")


@pytest.mark.parametrize("table", sorted(TABLES))
def test_a_failure_of_any_insert_leaves_no_rows(
    submit: Submit, break_table_for_test: Callable[[str], None], table: str
) -> None:
    break_table_for_test(table)
    with pytest.raises(DatabaseError):
        submit(options={"idempotencyKey": "k"})
    for model in (Run, RunStep, RunEvent, RunKey):
        assert not model._default_manager.exists()
    assert not AuditEntry.objects.filter(action="run.submitted").exists()


def test_a_submit_that_fails_under_rules_just_read_leaves_no_key(
    submit: Submit, break_table_for_test: Callable[[str], None]
) -> None:
    submit()
    rule = RuleFields("allow", tool=SUBMIT, reason="again")
    create_rule(rule, actor="test")  # as another process creates it
    break_table_for_test("runs_runstep")
    with pytest.raises(DatabaseError):
        submit(options={"idempotencyKey": "k"})
    assert not RunKey.objects.exists()


@override_settings(CONTINUITY_NOTIFY_WORKERS="tests.runs.submission.test_submission.record_wakeup")
@pytest.mark.parametrize("options", [{}, {"idempotencyKey": "k"}], ids=["plain", "keyed"])
def test_one_wakeup_is_sent_after_the_commit(submit: Submit, options: dict[str, Any]) -> None:
    sent.clear()
    run_id = submit(options=options)
    assert sent == [("runs", run_id)]


@override_settings(CONTINUITY_NOTIFY_WORKERS="tests.runs.submission.test_submission.fail_to_send")
def test_a_submit_succeeds_while_the_broker_is_unavailable(submit: Submit) -> None:
    run_id = submit()
    assert Run.objects.get(id=run_id).status == "queued"
    assert wakeups.send("runs", run_id) is False


REFUSED: list[tuple[dict[str, Any], type[Refused]]] = [
    ({"template_id": "nothing"}, TemplateNotFound),
    ({"template_id": "../../etc/passwd"}, TemplateNotFound),
    ({"template_id": ""}, TemplateNotFound),
    ({"template_id": "t" * 100_000}, TemplateNotFound),
    ({"options": {"templateVersion": "2.0.0"}}, TemplateVersionUnsupported),
    ({"options": {"templateVersion": "one"}}, TemplateVersionUnsupported),
    ({"inputs": {}}, InvalidInput),
    ({"inputs": {"do": []}}, InvalidInput),
    ({"inputs": {"do": ["ok"], "unknown": 1}}, InvalidInput),
    ({"inputs": {"do": [True]}}, InvalidInput),
    ({"inputs": {"do": ["ok"], "concurrency": True}}, InvalidInput),
    ({"inputs": {"do": ["ok"], "concurrency": 1.5}}, InvalidInput),
    ({"inputs": {"do": ["ok"] * 1001}}, InvalidInput),
    ({"session_id": "sess_missing"}, SessionNotFound),
    ({"options": {"mode": "sync", "timeoutMs": 300_001}}, InvalidInput),
    ({"options": {"outputSchema": {"type": "nonsense"}}}, InvalidInput),
    ({"options": {"outputSchema": {"maximum": 10**30}}}, InvalidInput),
    ({"options": {"outputSchema": {"$ref": "http://other.test/schema"}}}, InvalidInput),
    ({"options": {"outputSchema": {"description": "x" * 70_000}}}, InvalidInput),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_a_refused_submit_leaves_no_run(principal: Principal, number: int) -> None:
    call, refusal = REFUSED[number]
    base = {"template_id": "test_stepwise", "inputs": {"do": ["ok"]}}
    with pytest.raises(Refused) as refused:
        submit_run(principal=principal, **{**base, **call})
    assert type(refused.value) is refusal
    assert len(refused.value.message) < 700  # the error does not repeat the whole value
    assert not Run.objects.exists()
    assert not RunKey.objects.exists()


def test_a_closed_session_or_one_of_another_workspace_is_not_found(
    principal: Principal, outsider: Principal
) -> None:
    for name, owner, closed in (("a", outsider, None), ("b", principal, "2026-01-01T00:00:00Z")):
        BrowserSession.objects.create(
            id=name,
            tenant_id=owner.tenant_id,
            workspace_id=owner.workspace_id,
            name=name,
            closed_at=closed,
        )
        with pytest.raises(SessionNotFound):
            submit_run(
                principal=principal,
                template_id="test_stepwise",
                inputs={"do": ["ok"]},
                session_id=name,
            )


def test_a_remote_caller_cannot_use_a_local_template_and_the_refusal_is_audited(
    remote: Principal,
) -> None:
    with pytest.raises(TrustNotAllowed):
        submit_run(principal=remote, template_id="test_local_only", inputs={"do": ["ok"]})
    assert not Run.objects.exists()
    assert AuditEntry.objects.get(action="run.refused").metadata["trustLevel"] == "remote"


def test_a_submit_without_the_scope_is_refused(principal: Principal) -> None:
    reader = Principal(
        "token:r", principal.tenant_id, principal.workspace_id, frozenset({"runs:read"}), "local"
    )
    with pytest.raises(Forbidden):
        submit_run(principal=reader, template_id="test_stepwise", inputs={"do": ["ok"]})


def test_inputs_are_stored_as_sent_except_whole_floats_which_become_integers(
    principal: Principal,
) -> None:
    submitted = submit_run(
        principal=principal, template_id="test_stepwise", inputs={"do": ["ok"], "concurrency": 3.0}
    )
    assert Run.objects.get(id=submitted.run_id).inputs == {"do": ["ok"], "concurrency": 3}


def test_auto_mode_waits_only_while_a_slot_is_free(principal: Principal) -> None:
    call: dict[str, Any] = {"template_id": "test_stepwise", "inputs": {"do": ["ok"]}}
    assert submit_run(principal=principal, **call).run.mode == "sync"
    with override_settings(MAX_CONCURRENT_RUNS=0):
        assert submit_run(principal=principal, **call).run.mode == "async"


def test_each_mode_has_its_own_default_timeout(principal: Principal) -> None:
    for mode, timeout_ms in (("sync", 300_000), ("async", 600_000)):
        submitted = submit_run(
            principal=principal,
            template_id="test_stepwise",
            inputs={"do": ["ok"]},
            options={"mode": mode},
        )
        assert (submitted.run.mode, submitted.run.timeout_ms) == (mode, timeout_ms)


def test_invalid_inputs_are_answered_with_a_valid_example(principal: Principal) -> None:
    wrong = {"startUrl": "https://example.com/", "pagination": {"next": "Next page"}}
    with pytest.raises(InvalidInput) as found:
        submit_run(principal=principal, template_id="paginated_extract", inputs=wrong, options={})
    right = found.value.as_dict()["details"]["exampleInputs"]
    submitted = submit_run(
        principal=principal, template_id="paginated_extract", inputs=right, options={}
    )
    assert Run.objects.filter(id=submitted.run_id, status="queued").exists()


def test_an_unknown_template_is_answered_with_the_existing_ones(principal: Principal) -> None:
    with pytest.raises(TemplateNotFound) as found:
        submit_run(principal=principal, template_id="search_extrac", inputs={}, options={})
    assert "search_extract" in found.value.as_dict()["details"]["templateIds"]


@pytest.mark.parametrize("options", [{}, {"idempotencyKey": "k"}], ids=["plain", "keyed"])
def test_a_rule_that_this_process_has_not_read_applies_to_its_next_submit(
    submit: Submit, options: dict[str, Any]
) -> None:
    submit()
    # As another process creates it: this one keeps the rules that it has read.
    create_rule(RuleFields("deny", tool=SUBMIT, reason="not now"), actor="test")
    with pytest.raises(PolicyDenied):
        submit(options=options)
    assert Run.objects.count() == 1
