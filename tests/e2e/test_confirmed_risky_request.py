"""Test the flow of S2 §5 between an agent's host and a person at a browser: a risky message, the
gate, a confirmation in the inbox, the action as a run that waits for a second confirmation, the
outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import Principal
from runs.models import Run
from runs.worker.worker import WorkerProcess
from tests.contract.mcp_http_host import WebHost
from tests.support.admin.visitor import Visitor
from tests.support.browser.page_server import PageServer, html

RISKY: dict[str, Any] = {
    "user_id": "alice",
    "message": "Deploy build 42 to production now.",
    "idempotency_key": "k1",
    "slots": {
        "environment": "production",
        "target": "the shop",
        "success_criteria": "the page of build 42 is read",
    },
}


@pytest.fixture
def agent(web: str, token: str) -> Iterator[WebHost]:
    """Connect an agent's host that cannot confirm: people confirm in the admin."""
    with override_settings(CONFIRM_DELIVERY="out_of_band"):
        host = WebHost(web, token)
        yield host
        host.close()


@pytest.fixture
def worker(principal: Principal) -> Iterator[WorkerProcess]:
    """Return a worker that the test runs explicitly."""
    worker = WorkerProcess("w1")
    worker.open()
    yield worker
    worker.close()


def call(agent: WebHost, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool, assert that it succeeds, and return its answer."""
    result = agent.call(tool, arguments)["result"]
    assert not result["isError"], result
    answer: dict[str, Any] = result["structuredContent"]
    return answer


def confirm_in_inbox(visitor: Visitor) -> None:
    """Confirm the request in the inbox as a person does."""
    visitor.open("/admin/")
    visitor.click("a:has-text('inbox')")
    visitor.click("#result_list a:has-text('waiting')")
    visitor.click("button:has-text('Confirm')")
    visitor.wait_for(".cty-big [data-tone=succeeded]")


def test_from_a_risky_message_to_its_outcome(
    agent: WebHost, visitor: Visitor, worker: WorkerProcess, page_server: PageServer
) -> None:
    create_rule(RuleFields("confirm", tool="read_page", reason="pages of production"), actor="t")
    decision = call(agent, "continuity_chat", **RISKY)
    confirmation = decision["trace"]["high_risk_confirmation"]
    assert decision["trace"]["l4_gate"]["hit"] is True
    assert (confirmation["required"], confirmation.get("confirm_token")) == (True, None)
    confirm_in_inbox(visitor)

    page_server.add("/build", html("<title>Build 42</title><p>It is there.</p>"))
    inputs = {"urls": [page_server.url("/build")]}
    options = {"mode": "async"}
    run_id = call(
        agent, "run_task_template", templateId="batch_extract_pages", inputs=inputs, options=options
    )["runId"]
    worker.work()
    waiting = call(agent, "wait_task_run", runId=run_id, waitMs=20_000)
    assert (waiting["status"], waiting["waitingFor"]["type"]) == ("running", "confirmation")
    assert page_server.hits["/build"] == 0
    confirm_in_inbox(visitor)
    worker.work()
    run = call(agent, "wait_task_run", runId=run_id, waitMs=20_000)
    assert (run["status"], page_server.hits["/build"]) == ("succeeded", 1), run["error"]
    assert Run.objects.get(id=run_id).lease_owner is None

    record = call(
        agent,
        "continuity_report_outcome",
        decision_id=decision["decision_id"],
        user_id="alice",
        outcome_status="success",
        outcome_note=run_id,
    )
    assert record["outcome_status"] == "success"
