"""An approval permits the call that the person saw: on the target as it was, with these secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from decisions.authorization import confirmations
from decisions.authorization.decision_pages import as_text, decision_page
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.errors import NotAsShown
from decisions.identity.principals import DEFAULT_SCOPES, Principal
from decisions.models import AuditEntry, Confirmation, Decision
from runners.models import ExecutionTarget
from runs.models import Run
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.decisions.confirmations import confirm, decision_id
from tests.support.rest.rest import json_of
from tests.support.runners.stub_runner import StubRunner, responding_with, stub_runner

pytestmark = pytest.mark.usefixtures("open_loopback")

BASH = "/api/v1/tools/bash.exec/call"
TARGETS = "/api/v1/targets"


@pytest.fixture
def admin(client_with: Callable[..., httpx.Client]) -> httpx.Client:
    """A client whose token may write targets."""
    return client_with(scopes=DEFAULT_SCOPES | {"targets:admin"}, trust="local")


@pytest.fixture
def runners() -> Iterator[tuple[StubRunner, StubRunner]]:
    """Start two runners that answer every call."""
    answer = responding_with({"ok": True, "output": "hello"})
    with stub_runner(answer) as first, stub_runner(answer) as second:
        yield first, second


def require_confirmation(tool: str) -> None:
    create_rule(RuleFields("confirm", tool=tool, reason="test"), actor="test")


def create_target(admin: httpx.Client, **fields: Any) -> str:
    target_id: str = json_of(admin.post(TARGETS, json={"name": "builder", **fields}), 201)[
        "targetId"
    ]
    return target_id


def change_target(admin: httpx.Client, target_id: str, **fields: Any) -> None:
    json_of(admin.put(f"{TARGETS}/{target_id}", json={"name": "builder", **fields}), 200)


def approve(answer: httpx.Response) -> int:
    """Confirm the decision that a call waits for, as a person does who saw it; return its id."""
    body = json_of(answer, 202)
    number: int = body.get("error", body)["details"]["decisionId"]
    confirm(decision_id=number, by="admin:ann", how="admin")
    return number


def test_an_approved_call_is_not_made_at_another_endpoint(
    admin: httpx.Client, runners: tuple[StubRunner, StubRunner]
) -> None:
    first, second = runners
    target_id = create_target(admin, kind="docker-runner", endpoint=first.url)
    require_confirmation("bash.exec")
    body = {"args": {"cmd": "true"}, "targetId": target_id, "idempotencyKey": "k"}
    approved = approve(admin.post(BASH, json=body))
    change_target(admin, target_id, endpoint=second.url)
    again = admin.post(BASH, json=body)
    assert (again.status_code, first.requests, second.requests) == (202, [], [])
    assert approve(again) != approved
    assert json_of(admin.post(BASH, json=body), 200)["output"] == "hello"
    assert (len(first.requests), len(second.requests)) == (0, 1)


def test_an_approved_call_is_not_made_in_another_folder(
    admin: httpx.Client, tmp_path: Path, settings: Any
) -> None:
    settings.WORKSPACE_ROOTS = (tmp_path,)
    roots = [tmp_path / "one", tmp_path / "two"]
    for root in roots:
        root.mkdir()
    target_id = create_target(admin, kind="workspace", config={"root": str(roots[0])})
    require_confirmation("write_to_file")
    args = {"path": "a.txt", "content": "a:b;\n", "dryRun": True}
    body = {"args": args, "targetId": target_id, "idempotencyKey": "k"}
    path = "/api/v1/tools/write_to_file/call"
    approved = approve(admin.post(path, json=body))
    change_target(admin, target_id, config={"root": str(roots[1])})
    assert approve(admin.post(path, json=body)) != approved
    assert admin.post(path, json=body).status_code == 200


@pytest.fixture
def waiting_run(
    principal: Principal, admin: httpx.Client, runners: tuple[StubRunner, StubRunner]
) -> Iterator[tuple[Run, WorkerProcess, str]]:
    """Create a run that waits for the confirmation of a call on the first runner."""
    target_id = create_target(admin, kind="docker-runner", endpoint=runners[0].url)
    require_confirmation("echo")
    call = {"name": "echo", "args": {}, "targetId": target_id}
    options = {"mode": "async"}
    submitted = submit_run(
        principal=principal, template_id="call_tools", inputs={"calls": [call]}, options=options
    )
    with closing(WorkerProcess()) as worker:
        worker.work()
        yield Run.objects.get(id=submitted.run_id), worker, target_id


def test_the_digest_of_the_old_target_confirms_nothing(
    waiting_run: tuple[Run, WorkerProcess, str],
    admin: httpx.Client,
    runners: tuple[StubRunner, StubRunner],
) -> None:
    run, worker, target_id = waiting_run
    first, second = runners
    number = decision_id(run)
    old = decision_page(Decision.objects.get(pk=number)).digest
    change_target(admin, target_id, endpoint=second.url)
    with pytest.raises(NotAsShown):
        confirmations.confirm(decision_id=number, by="admin:ann", how="admin", shown=old)
    confirmations.request_anew(decision_id=number, by="admin:ann", how="admin")
    worker.work()
    assert (decision_id(run) != number, second.requests) == (True, [])
    confirm(decision_id=decision_id(run), by="admin:ann", how="admin")
    worker.work()
    assert Run.objects.get(id=run.id).status == "succeeded"
    assert (len(first.requests), len(second.requests)) == (0, 1)


def test_an_approval_of_a_step_is_not_used_on_the_target_after_a_change(
    waiting_run: tuple[Run, WorkerProcess, str],
    admin: httpx.Client,
    runners: tuple[StubRunner, StubRunner],
) -> None:
    run, worker, target_id = waiting_run
    number = decision_id(run)
    confirm(decision_id=number, by="admin:ann", how="admin")
    change_target(admin, target_id, endpoint=runners[1].url)
    worker.work()  # the approval was given for the old target: the run waits for another
    assert (decision_id(run) != number, runners[1].requests) == (True, [])


def login(password: str) -> dict[str, Any]:
    return {
        "templateId": "login_keep_session",
        "inputs": {
            "startUrl": "https://example.com/login",
            "credentials": {"username": "alice", "password": password},
            "fields": {"mode": "selector", "usernameSelector": "#u", "passwordSelector": "#p"},
        },
        "options": {"mode": "async", "idempotencyKey": "k"},
    }


def stored_texts() -> str:
    rows = [
        *Decision.objects.values(),
        *Confirmation.objects.values(),
        *AuditEntry.objects.values(),
    ]
    return str(rows)


def test_an_approved_submit_is_bound_to_its_secrets(admin: httpx.Client) -> None:
    require_confirmation("run_task_template")
    path = "/api/v1/runs"
    approved = approve(admin.post(path, json=login("harmless1")))
    page = as_text(decision_page(Decision.objects.get(pk=approved)))
    assert "inputs.credentials.password (text with a secret)" in page
    other = admin.post(path, json=login("different"))
    assert (other.status_code, Run.objects.count()) == (202, 0)
    assert approve(other) != approved
    assert admin.post(path, json=login("different")).is_success
    assert Run.objects.count() == 1
    assert not any(secret in stored_texts() + page for secret in ("harmless1", "different"))


def test_an_approved_target_is_bound_to_its_token(admin: httpx.Client) -> None:
    require_confirmation("create_target")
    new = {"kind": "docker-runner", "name": "builder", "endpoint": "http://127.0.0.1:18081/x"}
    approved = approve(admin.post(TARGETS, json={**new, "authToken": "harmless1"}))
    other = admin.post(TARGETS, json={**new, "authToken": "different"})
    assert (other.status_code, ExecutionTarget.objects.count()) == (202, 0)
    assert approve(other) != approved
    assert admin.post(TARGETS, json={**new, "authToken": "different"}).status_code == 201
