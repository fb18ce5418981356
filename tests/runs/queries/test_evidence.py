"""Test what the evidence of a run contains for a credential that is restricted to users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from decisions.audit.record import AuditEvent, record
from decisions.identity.principals import Principal
from decisions.models import Decision
from runs.models import Run
from runs.queries.evidence import export_evidence
from tests.support.decisions.continuity import create_decision


def lines_of(principal: Principal, run_id: str) -> list[dict[str, Any]]:
    """Return the lines of a run's evidence."""
    exported = b"".join(export_evidence(principal=principal, run_id=run_id))
    return [orjson.loads(line) for line in exported.splitlines()]


def decide(principal: Principal, run_id: str, user_id: str) -> int:
    """Make a decision about a call of a run, with its audit row, and return its id."""
    decision = create_decision(principal, user_id=user_id)
    Decision.objects.filter(pk=decision.pk).update(run_id=run_id)
    scope = principal.tenant_id, principal.workspace_id
    record(AuditEvent("policy.denied", principal.id, "decision", str(decision.pk), *scope))
    return decision.pk


def test_evidence_has_no_credentials_of_the_urls_in_the_inputs(
    principal: Principal, submit: Callable[..., str]
) -> None:
    run_id = submit("say:Open http://127.0.0.1:1/?access_token=canary-8a1f0c93 now.", "ok")
    exported = b"".join(export_evidence(principal=principal, run_id=run_id))
    assert b"canary" not in exported
    assert exported.count(b"access_token=***") == 3  # the inputs, the step's name and its input


def test_a_token_of_some_users_gets_no_decisions_and_audit_rows_of_others(
    principal: Principal, submit: Callable[..., str]
) -> None:
    run_id = submit("ok")
    Run.objects.update(user_id="carol")
    alices, carols = (decide(principal, run_id, user) for user in ("alice", "carol"))
    carol = replace(principal, id="token:tok_c", acts_for=frozenset({"carol"}))
    lines = lines_of(carol, run_id)
    assert [line["id"] for line in lines if line["type"] == "decision"] == [carols]
    audited = [(row["resourceType"], row["resourceId"]) for row in lines if row["type"] == "audit"]
    # The row about this export is its own action.
    assert audited == [("decision", str(carols)), ("run", run_id)]
    assert lines[0]["users"] == ["carol"]
    everything = lines_of(principal, run_id)
    assert [line["id"] for line in everything if line["type"] == "decision"] == [alices, carols]
    assert "users" not in everything[0]
