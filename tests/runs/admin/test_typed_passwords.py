"""A text that an agent types into a password field is shown to nobody, and typed as it is."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from decisions.authorization.sealed_arguments import shown_digest
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Decision
from runs.conversations.services import create_task
from runs.models import Run, RunEvent, RunStep
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import execute_run
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.own_browser import SHOP, TAB, ScriptedBrowser
from tests.support.decisions.deciders import SURFACES, Decider

pytest_plugins = [
    "tests.support.admin.admin_fixtures",
    "tests.support.workspace.workspace_fixtures",
    "tests.support.agent.model_fixtures",
    "tests.support.agent.agent_fixtures",
    "tests.support.browser.own_browser_fixtures",
]
WORD = "hunter22-mellon"


@pytest.fixture
def waiting(
    principal: Principal,
    model: ModelServer,
    agent_settings: Any,
    project: Any,
    worker: WorkerProcess,
    browser: ScriptedBrowser,
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Return a run that waits for a person to confirm a password in their own browser."""
    monkeypatch.setattr("runs.management.commands.confirm.prepare_home", lambda: None)
    browser.text = '[4] input password "Word" = ""'
    typed = Call("browser_type", {"tabId": TAB, "clickId": 4, "text": WORD}, "type")
    model.script = [
        Turn("", [Call("task_start", {"url": SHOP}, "open")]),
        Turn("", [typed]),
        complete(),
    ]
    create_task(principal=principal, message="Log in.", target_id="plugin")
    return execute_run(Run.objects.get().id, worker)


@pytest.mark.parametrize("surface", SURFACES)
def test_a_password_is_confirmed_unseen_and_typed_as_it_is(
    surface: str,
    waiting: Run,
    superuser_client: Client,
    worker: WorkerProcess,
    browser: ScriptedBrowser,
) -> None:
    decision, decider = Decision.objects.get(), Decider(surface, superuser_client)
    seen = decider.see(decision.pk).text
    assert "secret text, 15 characters" in seen
    assert WORD not in seen
    decider.decide(decision.pk, "confirm", shown_digest(decision))
    assert execute_run(waiting.id, worker).status == "succeeded"
    (typed,) = [action for action in browser.sent if action.name == "browser_type"]
    assert typed.params["text"] == WORD


def test_a_password_is_on_no_page_of_its_run_and_in_no_record(
    waiting: Run, superuser_client: Client
) -> None:
    run_page = f"/admin/runs/run/{waiting.id}"
    steps = [f"{run_page}/steps/{step.index}/" for step in RunStep.objects.all()]
    for url in [f"{run_page}/change/", f"{run_page}/live/", *steps]:
        page = superuser_client.get(url)
        assert page.status_code == 200
        assert WORD not in page.content.decode(), url
    rows = [AuditEntry.objects.values(), RunEvent.objects.values(), Decision.objects.values()]
    assert WORD not in str([list(one) for one in rows])
