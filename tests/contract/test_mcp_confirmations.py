"""Test a direct call over MCP that a person must confirm first."""

from __future__ import annotations

from typing import Any

import pytest

from decisions.authorization.confirmations import refuse
from decisions.authorization.policy_rules import RuleFields, create_rule
from runs.models import Run
from tests.contract.mcp_host import Host, error_of, structured
from tests.support.decisions.confirmations import confirm

TRANSPORTS = ("stdio", "http", "sse")
CALL: dict[str, Any] = {
    "templateId": "test_stepwise",
    "inputs": {"do": ["ok"]},
    "options": {"mode": "async", "idempotencyKey": "k"},
}


@pytest.fixture(autouse=True)
def _require_confirmation(host: Host) -> None:
    create_rule(RuleFields("confirm", tool="run_task_template", reason="test"), actor="t")


def required_decision(host: Host) -> int:
    error = error_of(host.call("run_task_template", CALL))
    assert error["errorCode"] == "CONFIRMATION_REQUIRED"
    assert isinstance(error["details"]["expiresAt"], int)
    number: int = error["details"]["decisionId"]
    return number


def test_the_same_call_runs_after_a_person_has_confirmed_it(host: Host) -> None:
    number = required_decision(host)
    assert required_decision(host) == number
    assert not Run.objects.exists()
    confirm(decision_id=number, by="admin:ann", how="admin")
    answer = structured(host.call("run_task_template", CALL))
    assert (answer["status"], Run.objects.count()) == ("queued", 1)


def test_a_call_that_a_person_refused_is_reported_as_refused(host: Host) -> None:
    refuse(decision_id=required_decision(host), by="admin:ann", how="admin")
    error = error_of(host.call("run_task_template", CALL))
    assert (error["errorCode"], error["details"]["because"]) == ("POLICY_DENIED", "refused")
    assert not Run.objects.exists()
