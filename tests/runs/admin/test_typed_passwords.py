"""A text that an agent or a host types into a password field is shown to nobody, and typed as it
is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.test import Client

from decisions.authorization.policy import SUBMIT
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.authorization.sealed_arguments import shown_digest
from decisions.foundation.errors import ConfirmationRequired, RunNeedsConfirmation
from decisions.identity.principals import Principal
from decisions.models import AuditEntry, Decision
from runs.calls.direct.browser_actions import ActionOutcome, perform_action
from runs.conversations.services import create_task
from runs.models import Run, RunEvent, RunSecret, RunStep
from runs.queries.evidence import export_evidence
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import execute_run
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.audit.canaries import every_column, found_in
from tests.support.audit.secret_search import every_page
from tests.support.browser.paired_browser import SHOP, TAB, ScriptedBrowser
from tests.support.decisions.deciders import SURFACES, Decider
from tests.support.runs.waiting import wait_until

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
    """Return a run that waits for a person to confirm a password in their paired browser."""
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
    waiting: Run, superuser_client: Client, principal: Principal
) -> None:
    run_page = f"/admin/runs/run/{waiting.id}"
    steps = [f"{run_page}/steps/{step.index}/" for step in RunStep.objects.all()]
    for url in [f"{run_page}/change/", f"{run_page}/live/", *steps]:
        page = superuser_client.get(url)
        assert page.status_code == 200
        assert WORD not in page.content.decode(), url
    rows = [AuditEntry.objects.values(), RunEvent.objects.values(), Decision.objects.values()]
    assert WORD not in str([list(one) for one in rows])
    assert WORD.encode() not in b"".join(export_evidence(principal=principal, run_id=waiting.id))


@pytest.fixture
def type_as_host(
    principal: Principal, browser: ScriptedBrowser, background_worker: None
) -> Callable[..., ActionOutcome]:
    """Return a function that types as a host does, into a field of the page that it has seen."""
    browser.text = '[4] input password "Word" = ""'
    act = partial(perform_action, principal=principal)
    opened = act(name="task_start", args={"url": SHOP}, session_id=None, target_id="plugin")
    session_id = asyncio.run(opened).session_id

    def type_in(**args: Any) -> ActionOutcome:
        where = {"clickId": 4, **args} if "xpath" not in args else args
        return asyncio.run(act(name="browser_type", args=where, session_id=session_id))

    return type_in


def every_reader(principal: Principal, superuser_client: Client) -> str:
    """Return what the pages, the export and the evidence of every run show."""
    texts = [b"".join(superuser_client.get("/admin/runs/run/export/")).decode()]
    for run_id in Run.objects.values_list("id", flat=True):
        texts.append(every_page(superuser_client, run_id))
        texts.append(b"".join(export_evidence(principal=principal, run_id=run_id)).decode())
    return "\n".join(texts)


def test_what_a_host_types_into_a_password_field_is_stored_nowhere_and_typed_as_it_is(
    type_as_host: Callable[..., ActionOutcome],
    superuser_client: Client,
    principal: Principal,
    browser: ScriptedBrowser,
) -> None:
    with pytest.raises(RunNeedsConfirmation) as asked:
        type_as_host(text=WORD)
    decision, decider = Decision.objects.get(), Decider("admin", superuser_client)
    seen = decider.see(decision.pk).text
    assert "secret text, 15 characters" in seen
    decider.decide(decision.pk, "confirm", shown_digest(decision))
    run_id = str(asked.value.details["runId"])
    wait_until(lambda: Run.objects.get(pk=run_id).status == "succeeded")
    (typed,) = [action for action in browser.sent if action.name == "browser_type"]
    assert typed.params["text"] == WORD
    places = {**every_column(), "request": seen, "said": asked.value.message}
    places["readers"] = every_reader(principal, superuser_client)
    assert list(found_in({"typed": WORD}, places)) == []
    assert not RunSecret.objects.exists()


def test_the_request_for_a_submit_does_not_show_what_a_host_types_into_a_password_field(
    type_as_host: Callable[..., ActionOutcome], superuser_client: Client
) -> None:
    create_rule(RuleFields("confirm", tool=SUBMIT, reason="of a test"), actor="test")
    with pytest.raises(ConfirmationRequired):
        type_as_host(text=WORD)
    seen = Decider("admin", superuser_client).see(Decision.objects.get().pk).text
    assert "secret args.text" in seen
    assert list(found_in({"typed": WORD}, {**every_column(), "request": seen})) == []


def test_no_reader_shows_what_a_host_types_into_a_field_that_the_page_calls_secret_later(
    type_as_host: Callable[..., ActionOutcome],
    superuser_client: Client,
    principal: Principal,
    browser: ScriptedBrowser,
) -> None:
    browser.replies["browser_judge"] = lambda action: browser.judged(action) | {"isSecret": True}
    with pytest.raises(RunNeedsConfirmation):
        type_as_host(text=WORD, xpath="//form/input[2]")
    assert Run.objects.latest("created_at").inputs["args"]["text"] == WORD
    assert WORD not in every_reader(principal, superuser_client)
