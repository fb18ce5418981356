"""No row, file, log line, event, answer or page contains credentials, however a login run ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.test import Client

from artifacts.models import Artifact
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import Principal
from runs.models import Run, RunEvent
from runs.submission.cancel import cancel_run
from runs.submission.submitted_run import SubmittedRun
from runs.worker.worker import WorkerProcess
from tests.contract.mcp_host import PrincipalTransport, StdioHost, structured
from tests.support.audit.secret_search import (
    collect_logs,
    every_file,
    every_page,
    every_row,
    find_secret,
)
from tests.support.browser.login_site import PASSWORD, USERNAME
from tests.support.browser.page_server import html
from tests.support.browser.template_sites import Site, by_text
from tests.support.decisions.confirmations import answer_confirmation

SubmitLogin = Callable[..., SubmittedRun]
SLOW = pytest.mark.slow  # for cases that no guard names
ODD = 'canary "pass" <wörd> & 7731'
SHORT = "k9-x2"
ECHOED = "canary-code-88213"


def every_response(api: httpx.Client, principal: Principal, run_id: str) -> str:
    """Return all that REST and MCP return about a run."""
    texts = [api.get(f"/api/v1/runs/{run_id}{part}").text for part in ("", "/events", "/artifacts")]
    texts += [api.get(path).text for path in ("/api/v1/runs", "/api/v1/sessions")]
    for artifact_id in Artifact.objects.filter(run_id=run_id).values_list("id", flat=True):
        texts.append(api.get(f"/api/v1/artifacts/{artifact_id}").text)
        texts.append(api.get(f"/api/v1/artifacts/{artifact_id}/content").text)
    host = StdioHost(PrincipalTransport(principal))
    try:
        for tool, args in (
            ("get_task_run", {"runId": run_id}),
            ("list_task_runs", {}),
            ("subscribe_task_run_events", {"runId": run_id}),
        ):
            texts.append(str(structured(host.call(tool, args))))
    finally:
        host.close()
    return "\n".join(texts)


@pytest.fixture
def collect_contents(
    api: httpx.Client, superuser_client: Client, principal: Principal
) -> Callable[[str, list[str]], dict[str, str | bytes]]:
    """Return all places where a run may have stored data."""

    def collect(run_id: str, log_lines: list[str]) -> dict[str, str | bytes]:
        return {
            "row": every_row(),
            "file": every_file(),
            "log": "\n".join(log_lines),
            "response": every_response(api, principal, run_id),
            "page": every_page(superuser_client, run_id),
        }

    return collect


CollectContents = Callable[[str, list[str]], dict[str, str | bytes]]


@pytest.mark.parametrize(
    ("username", "password", "path", "status"),
    [
        (USERNAME, PASSWORD, "/login", "succeeded"),
        pytest.param("canary-user-5521", ODD, "/login", "failed", marks=SLOW),
        pytest.param("canary-user-5521", SHORT, "/login", "failed", marks=SLOW),
        pytest.param("canary-user-5521", ODD, "/no_form", "failed", marks=SLOW),
        ("canary-user-5521", ODD, "/leaky", "failed"),
    ],
    ids=["logged in", "refused", "short", "no form", "leaking site"],
)
def test_no_outcome_of_a_login_stores_its_credentials(
    submit_login: SubmitLogin,
    worker: WorkerProcess,
    collect_contents: CollectContents,
    username: str,
    password: str,
    path: str,
    status: str,
) -> None:
    with collect_logs() as log_lines:
        submitted = submit_login(username=username, password=password, path=path)
        worker.work()
        run = Run.objects.get(id=submitted.run_id)
        assert run.status == status, run.error
        contents = collect_contents(run.id, log_lines)
    assert len(log_lines) > 20
    assert find_secret(password, contents) == []
    assert find_secret(username, contents) == []


def test_a_login_that_leaks_and_succeeds_exposes_no_credentials(
    submit_login: SubmitLogin, worker: WorkerProcess, collect_contents: CollectContents
) -> None:
    with collect_logs() as log_lines:
        submitted = submit_login(
            username="canary-user-5521", password=ODD, path="/leaky", successIndicator=None
        )
        worker.work()
        run = Run.objects.get(id=submitted.run_id)
        contents = collect_contents(run.id, log_lines)
    assert run.result["title"] == "You typed ***"
    assert "***" in run.result["finalUrl"]
    assert find_secret(ODD, contents) == []


def test_a_canceled_login_stores_nothing(
    submit_login: SubmitLogin,
    worker: WorkerProcess,
    collect_contents: CollectContents,
    principal: Principal,
    in_background: Callable[..., Any],
) -> None:
    indicator = {"type": "selector", "value": "#never", "timeoutMs": 20_000}
    with collect_logs() as log_lines:
        submitted = submit_login(
            username="canary-user-5521", password=ODD, successIndicator=indicator
        )
        canceling = in_background(worker.work)
        while not RunEvent.objects.filter(run_id=submitted.run_id, data__step=4).exists():
            assert canceling.is_alive()
        cancel_run(principal=principal, run_id=submitted.run_id)
        canceling.join(20)
        contents = collect_contents(submitted.run_id, log_lines)
    assert find_secret(ODD, contents) == []
    assert find_secret("canary-user-5521", contents) == []


def test_a_login_that_never_starts_keeps_its_credentials_sealed(
    submit_login: SubmitLogin, collect_contents: CollectContents, principal: Principal
) -> None:
    with collect_logs() as log_lines:
        submitted = submit_login(
            password=ODD, username="canary-user-5521", options={"idempotencyKey": "k"}
        )
        again = submit_login(
            password="another", username="canary-user-5521", options={"idempotencyKey": "k"}
        )
        queued = collect_contents(submitted.run_id, log_lines)
        cancel_run(principal=principal, run_id=submitted.run_id)
    assert (again.run_id, again.inputs_match) == (submitted.run_id, True)
    assert find_secret(ODD, queued) == []
    assert find_secret("canary-user-5521", queued) == []


@pytest.mark.parametrize("tool", ["submit_form", "wait_for"])
def test_a_confirmed_form_that_the_page_echoes_exposes_no_flagged_value(
    submit_template: Callable[..., str],
    worker: WorkerProcess,
    site: Site,
    collect_contents: CollectContents,
    tool: str,
) -> None:
    create_rule(RuleFields("confirm", tool=tool, reason="test"), actor="test")
    site.server.add(
        "/form",
        "<title>Form</title><form action=/echo><label>Code"
        " <input name=code></label><button>Send</button></form>",
    )
    site.server.add("/echo", lambda query: html(f"<title>{query}</title><h1>Got {query}</h1>"))
    code = {"name": "code", "value": ECHOED, "locator": by_text("code"), "secret": True}
    with collect_logs() as log_lines:
        run_id = submit_template("submit_and_verify", startUrl=site.url("/form"), fields=[code])
        worker.work()
        answer_confirmation(Run.objects.get(id=run_id))
        worker.work()
        run = Run.objects.get(id=run_id)
        contents = collect_contents(run_id, log_lines)
    assert run.status == "succeeded", run.error
    assert run.result["finalPage"]["title"] == "code=***"
    assert find_secret(ECHOED, contents) == []


def test_a_rejected_request_echoes_no_credential(
    api: httpx.Client, collect_contents: CollectContents, members_site: str
) -> None:
    for wrong in (
        ODD,
        {"username": "u", "password": 77_317_731},
        {"username": ODD},
        {"username": "u", "password": ODD, "more": ODD},
        {"username": "u", "password": ODD * 100},
    ):
        body = {
            "templateId": "login_keep_session",
            "inputs": {
                "startUrl": members_site,
                "credentials": wrong,
                "fields": {"mode": "selector", "usernameSelector": "#u", "passwordSelector": "#p"},
            },
        }
        response = api.post("/api/v1/runs", json=body)
        assert response.status_code == 400
        assert response.json()["errorCode"] == "INVALID_PARAMETER"
        assert find_secret(ODD, {"response": response.text}) == []
        assert "77317731" not in response.text
    assert find_secret(ODD, {"row": every_row()}) == []
