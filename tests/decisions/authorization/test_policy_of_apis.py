"""Every call that changes something, over REST and MCP, is checked by policy under its own name."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from django.urls import get_resolver

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import DEFAULT_SCOPES, Principal, authenticate, create_token
from decisions.models import (
    AuditEntry,
    Confirmation,
    ConfirmationStatus,
    Decision,
    DecisionKind,
    Outcome,
    UserObject,
)
from runners.models import BrowserSession, ExecutionTarget, PluginTicket
from runners.targets.targets import TargetFields, create_target_row
from runs.conversations.services import take_over_task
from runs.models import Run, Task, TaskMessage, Webhook, WebhookDelivery
from runs.sessions.services import create_session
from runs.webhooks.services import create_webhook, disable_webhook
from tests.contract.mcp_host import PrincipalTransport, StdioHost
from tests.support.browser.paired_browser import pair
from tests.support.decisions.confirmations import confirm
from tests.support.decisions.continuity import (
    SHELL,
    SUCCESS_PATH,
    create_decision,
    create_decision_with_outcome,
)
from tests.support.rest.rest import submission

ENDPOINT = "https://8.8.8.8/execute"
URL = "https://hooks.example.test/x"
BYTES = b"a,b"


@dataclass(frozen=True)
class Write:
    """A REST call that changes something; `{…}` in its path and body is replaced by a fact."""

    tool: str
    route: str
    body: Mapping[str, Any] = field(default_factory=dict)
    method: str = "POST"

    def send(self, client: httpx.Client, facts: Mapping[str, str]) -> httpx.Response:
        path = self.route
        for name, value in facts.items():
            path = path.replace(f"{{{name}}}", value)
        return client.request(self.method, f"/api/v1/{path}", json=dict(self.body))


CHAT = {"user_id": "alice", "message": "Read the notes of the release.", "idempotency_key": "k"}
UPLOAD = {
    "name": "a.csv",
    "mimeType": "text/csv",
    "sizeBytes": len(BYTES),
    "sha256": hashlib.sha256(BYTES).hexdigest(),
}
TARGET = {"name": "builder", "endpoint": ENDPOINT, "authToken": "s3cret-token"}
OUTCOME = {"outcome_status": "success", "outcome_note": "done"}
WRITES = (
    Write("run_task_template", "runs", submission(mode="async")),
    Write("run_task_template", "runs/{failedRun}/retry"),
    Write("cancel_task_run", "runs/{run}/cancel"),
    Write("create_session", "sessions", {"name": "new"}),
    Write("rename_session", "sessions/{session}", {"name": "other"}, "PATCH"),
    Write("clone_session", "sessions/{session}/clone"),
    Write("close_session", "sessions/{session}", method="DELETE"),
    Write("create_webhook", "webhooks", {"url": URL}),
    Write("disable_webhook", "webhooks/{hook}/disable"),
    Write("enable_webhook", "webhooks/{offHook}/enable"),
    Write("replay_webhook_delivery", "webhooks/{hook}/deliveries/{delivery}/replay"),
    Write("delete_webhook", "webhooks/{hook}", method="DELETE"),
    Write("start_artifact_upload", "artifacts/uploads", UPLOAD),
    Write("complete_artifact_upload", "artifacts/uploads/{upload}/complete"),
    Write("create_target", "targets", {**TARGET, "kind": "docker-runner"}),
    Write("replace_target", "targets/{target}", TARGET, "PUT"),
    Write("probe_target", "targets/{target}/probe"),
    Write("delete_target", "targets/{target}", method="DELETE"),
    Write("create_task", "tasks", {"title": "new"}),
    Write("run_task_template", "tasks/{task}/messages", {"content": "say hi"}),
    Write("take_over_task", "tasks/{task}/takeover"),
    Write("resume_task", "tasks/{takenTask}/resume"),
    Write("stop_task", "tasks/{task}/stop"),
    Write("pair_browser", "plugin/ticket", {"name": "Laptop"}),
    Write("remove_browser", "plugin/clients/{browser}", method="DELETE"),
    Write("continuity_chat", "chat", CHAT),
    Write("continuity_report_outcome", "decision/{decided}/outcome?user_id=alice", OUTCOME),
    Write("continuity_put_shell", "user/alice/objects/shell", SHELL),
    Write("continuity_put_success_path", "user/alice/objects/success-path", SUCCESS_PATH),
)
BY_TOOL = {write.tool: write for write in WRITES}
NOT_IN_TABLE = {  # routes that change nothing, and routes that a separate test covers
    "page-content": "reads",
    "tasks/{}/ticket": "opens reads only; writes over it are checked by policy",
    "runs/{}/answer": "tested below",
    "tools/{}/call": "test_tool_calls.py",
    "decision/{}/confirm": "tested below",
    "artifacts/upload/{}": "the bytes of a start_artifact_upload",
}


@pytest.fixture
def token(principal: Principal) -> str:
    """A token with every scope, including the scopes for targets."""
    scopes = DEFAULT_SCOPES | {"targets:admin"}
    return create_token(name="test", scopes=scopes, trust="local")


@pytest.fixture
def facts(
    principal: Principal,
    api: httpx.Client,
    make_run: Callable[..., Any],
    make_task: Callable[..., str],
) -> Mapping[str, str]:
    """Create the rows that the calls refer to, before any rule exists."""
    hook = create_webhook(principal=principal, url=URL)["webhookId"]
    disabled_hook = create_webhook(principal=principal, url=URL)["webhookId"]
    disable_webhook(principal=principal, webhook_id=disabled_hook)
    now, ended_run = datetime.now(UTC), make_run(status="succeeded")
    delivery = WebhookDelivery.objects.create(
        id="dlv_1",
        webhook_id=hook,
        run_id=ended_run.id,
        event="run.succeeded",
        created_at=now,
        next_try_at=now,
        status="failed",
    )
    upload = api.post("/api/v1/artifacts/uploads", json=UPLOAD).json()
    assert httpx.put(upload["url"], content=BYTES, headers=upload["headers"]).is_success
    workspace = principal.tenant_id, principal.workspace_id
    target = create_target_row(
        TargetFields(*workspace, "runner", "docker-runner", ENDPOINT), actor="t"
    )
    caller = authenticate(api.headers["Authorization"].removeprefix("Bearer "))
    return {
        "run": make_run().id,
        "failedRun": make_run(status="failed").id,
        "hook": hook,
        "session": create_session(principal=caller)["sessionId"],
        "offHook": disabled_hook,
        "delivery": delivery.id,
        "upload": upload["uploadId"],
        "target": target.id,
        "task": make_task(),
        "takenTask": take_over_task(principal=principal, task_id=make_task())["taskId"],
        "browser": pair(caller).id,
        "decided": str(create_decision_with_outcome(principal).decision_id),
    }


def count_rows() -> list[int]:
    """Count the rows of every kind that the calls write."""
    tables = (
        BrowserSession,
        Webhook,
        WebhookDelivery,
        UserObject,
        Decision,
        ExecutionTarget,
        PluginTicket,
        Run,
        Task,
        TaskMessage,
    )
    reported = Outcome.objects.filter(status__isnull=False)
    audited = AuditEntry.objects.exclude(action="policy.denied")
    return [*(table.objects.count() for table in tables), reported.count(), audited.count()]


def routes_of(pattern: Any) -> Iterator[tuple[str, type]]:
    for each in pattern.url_patterns:
        if hasattr(each, "url_patterns"):
            for route, view in routes_of(each):
                yield str(each.pattern) + route, view
        elif hasattr(each.callback, "view_class"):
            yield str(each.pattern), each.callback.view_class


def test_every_call_that_changes_something_is_in_the_table() -> None:
    def blank(route: str) -> str:
        return re.sub(r"<[^>]*>|\{[^}]*\}|alice", "{}", route.partition("?")[0])

    found = {
        (blank(route).removeprefix("api/v1/"), method)
        for route, view in routes_of(get_resolver())
        for method in ("POST", "PUT", "PATCH", "DELETE")
        if route.startswith("api/v1/") and hasattr(view, method.lower())
    }
    known = {(blank(write.route), write.method) for write in WRITES}
    assert {call for call in found if call[0] not in NOT_IN_TABLE} == known


@pytest.mark.parametrize("write", WRITES, ids=lambda write: f"{write.method} {write.route}")
def test_a_denied_call_changes_nothing(
    write: Write, api: httpx.Client, facts: Mapping[str, str]
) -> None:
    create_rule(RuleFields("deny", tool="*", reason="closed"), actor="t")
    before = count_rows()
    answer = write.send(api, facts)
    assert answer.status_code == 403, answer.text
    body = answer.json()
    assert body.get("errorCode", body.get("code", "")).upper() == "POLICY_DENIED"
    assert count_rows() == before
    assert AuditEntry.objects.get(action="policy.denied").resource_id == write.tool


@pytest.mark.parametrize("tool", BY_TOOL)
def test_a_confirmed_call_is_performed_once(
    tool: str, api: httpx.Client, facts: Mapping[str, str]
) -> None:
    create_rule(RuleFields("confirm", tool=tool, reason="test"), actor="t")
    write = BY_TOOL[tool]
    assert [write.send(api, facts).status_code for _ in range(2)] == [202, 202]
    confirmation = Confirmation.objects.get(status=ConfirmationStatus.WAITING)
    assert confirmation.decision.tool == tool
    confirm(decision_id=confirmation.decision_id, by="admin:ann", how="admin")
    assert write.send(api, facts).is_success
    confirmation.refresh_from_db()
    assert confirmation.used_at is not None


def test_a_repeated_key_returns_the_first_answer_whatever_the_rules_are_now(
    api: httpx.Client, facts: Mapping[str, str]
) -> None:
    for tool in ("continuity_put_shell", "continuity_report_outcome", "continuity_chat"):
        keyed = {"idempotency_key": "k"} if tool == "continuity_put_shell" else {}
        write = Write(tool, BY_TOOL[tool].route, {**BY_TOOL[tool].body, **keyed})
        create_rule(RuleFields("confirm", tool=tool, reason="test"), actor="t")
        assert write.send(api, facts).status_code == 202
        confirmation = Confirmation.objects.get(status=ConfirmationStatus.WAITING)
        confirm(decision_id=confirmation.decision_id, by="admin:ann", how="admin")
        first = write.send(api, facts).json()
        second = write.send(api, facts)
        assert (second.status_code, second.json()) == (200, first)


def test_answering_a_run_is_checked_by_policy(
    api: httpx.Client, make_run: Callable[..., Any]
) -> None:
    run = make_run(waiting_for={"type": "answer", "question": "Which?"}, ready=False)
    create_rule(RuleFields("deny", tool="answer_task_run", reason="test"), actor="t")
    answer = api.post(f"/api/v1/runs/{run.id}/answer", json={"answer": "this"})
    assert answer.status_code == 403


MCP = {
    "continuity_chat": CHAT,
    "continuity_put_shell": {**SHELL, "user_id": "alice"},
    "continuity_put_success_path": {**SUCCESS_PATH, "user_id": "alice"},
    "continuity_confirm_decision": {"decision_id": 1, "user_id": "alice", "confirm_token": "x"},
    "continuity_report_outcome": {**OUTCOME, "decision_id": 1, "user_id": "alice"},
}


@pytest.mark.parametrize("tool", MCP)
def test_mcp_calls_are_checked_by_the_same_policy(tool: str, token: str) -> None:
    create_rule(RuleFields("deny", tool=tool, reason="test"), actor="t")
    with closing(StdioHost(PrincipalTransport(authenticate(token)))) as host:
        result = host.call(tool, json.dumps(MCP[tool]).encode())["result"]
    assert result["isError"]
    assert json.loads(result["content"][0]["text"])["code"] == "policy_denied"
    assert not UserObject.objects.exists()


@pytest.mark.parametrize("verdict", ["deny", "confirm"])
def test_no_rule_prevents_people_from_confirming(
    verdict: str, principal: Principal, api: httpx.Client
) -> None:
    decision = create_decision(principal, mode="confirm")
    Confirmation.objects.create(
        decision=decision,
        delivery="out_of_band",
        created_at=datetime.now(UTC),
        expires_at=datetime(2100, 1, 1, tzinfo=UTC),
    )
    create_rule(RuleFields(verdict, tool="*", reason="test"), actor="t")
    call = {"user_id": "alice", "confirm_token": "x"}
    answer = api.post(f"/api/v1/decision/{decision.pk}/confirm", json=call)
    assert (answer.status_code, answer.json()["code"]) == (403, "policy_denied")
    assert Decision.objects.count() == 1, "no confirmation may be required for an answer"
    confirm(decision_id=decision.pk, by="admin:ann", how="admin")
    assert Confirmation.objects.get(decision=decision).status == ConfirmationStatus.CONFIRMED
    assert decision.kind == DecisionKind.CHAT
