"""Test what a call requests from the person at the host, in both eras of the protocol: the answer
to a run's question, and the page of a confirmation, on which only an operator decides.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import mcp_types as types
import pytest
from django.test import Client as Browser
from mcp import Client

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.foundation.infra.threads import in_thread
from decisions.identity.principals import Principal
from decisions.models import Confirmation
from mcp_server.server import ContinuityServer
from runs.models import Run
from runs.submission.answer import answer_run
from tests.contract.mcp_host import PrincipalTransport

pytestmark = pytest.mark.parametrize("mode", ["auto", "legacy"])
ADDRESS = "https://team.example"
CALL = {
    "templateId": "test_stepwise",
    "inputs": {"do": ["ok"]},
    "options": {"mode": "async", "idempotencyKey": "k"},
}


class Person:
    """The person at the host, who answers each request in the same way."""

    def __init__(self, action: str, content: dict[str, Any] | None = None) -> None:
        self.requests: list[Any] = []
        self._action, self._content = action, content
        self.meanwhile: Callable[[], Any] = lambda: None  # what happens before they answer

    async def answer(self, context: Any, params: Any) -> types.ElicitResult:
        """Return the answer to a request."""
        self.requests.append(params)
        await in_thread(self.meanwhile)
        return types.ElicitResult(action=self._action, content=self._content)  # type: ignore[arg-type]


def call(
    principal: Principal, mode: str, tool: str, arguments: dict[str, Any], person: Person | None
) -> types.CallToolResult:
    """Call a tool from a host at which this person sits; None: the host cannot ask anyone."""

    async def go() -> types.CallToolResult:
        server = ContinuityServer(["runtime"], PrincipalTransport(principal))
        callback: Any = person.answer if person is not None else None
        async with Client(server, mode=mode, elicitation_callback=callback) as client:
            result = await client.call_tool(tool, arguments)
            assert isinstance(result, types.CallToolResult)
            return result

    return asyncio.run(go())


@pytest.fixture
def asking_run(make_run: Callable[..., Run]) -> Run:
    """Insert a run that waits for an answer."""
    expires_at = int(time.time() * 1000) + 60_000
    waiting = {
        "type": "answer",
        "question": "Which color?",
        "suggestions": ["blue"],
        "expiresAt": expires_at,
    }
    return make_run(status="running", ready=False, waiting_for=waiting)


def wait(principal: Principal, mode: str, run: Run, person: Person | None) -> dict[str, Any]:
    arguments = {"runId": run.id, "waitMs": 50}
    result = call(principal, mode, "wait_task_run", arguments, person)
    answer: dict[str, Any] | None = result.structured_content
    assert answer is not None
    return answer


def test_the_question_of_a_run_is_a_form_at_the_host(
    principal: Principal, asking_run: Run, mode: str
) -> None:
    person = Person("accept", {"answer": "green"})
    assert "waitingFor" not in wait(principal, mode, asking_run, person)
    (form,) = person.requests
    assert (form.mode, form.message) == ("form", "Which color?\nSuggestions: blue")
    asking_run.refresh_from_db()
    assert (asking_run.ready, asking_run.options["answer"]) == (True, "green")


@pytest.mark.parametrize("person", [Person("decline"), Person("accept", {"answer": " "}), None])
def test_without_an_answer_the_caller_gets_the_question(
    principal: Principal, asking_run: Run, mode: str, person: Person | None
) -> None:
    assert wait(principal, mode, asking_run, person)["waitingFor"]["question"] == "Which color?"
    asking_run.refresh_from_db()
    assert not asking_run.ready


def test_the_answer_to_one_question_is_not_recorded_as_the_answer_to_another(
    principal: Principal, asking_run: Run, mode: str
) -> None:
    person = Person("accept", {"answer": "yes"})
    other = {**(asking_run.waiting_for or {}), "question": "Delete all?"}
    other["expiresAt"] += 1
    person.meanwhile = lambda: Run.objects.filter(id=asking_run.id).update(waiting_for=other)
    assert wait(principal, mode, asking_run, person)["waitingFor"]["question"] == "Delete all?"
    assert [form.message for form in person.requests] == ["Which color?\nSuggestions: blue"]
    asking_run.refresh_from_db()
    assert not asking_run.ready


def test_an_answer_that_cannot_be_stored_is_repaired(
    principal: Principal, asking_run: Run, mode: str
) -> None:
    person = Person("accept", {"answer": "gr\0een"})
    assert "waitingFor" not in wait(principal, mode, asking_run, person)


def test_a_question_that_was_answered_elsewhere_returns_the_run(
    principal: Principal, asking_run: Run, mode: str
) -> None:
    person = Person("accept", {"answer": "green"})
    person.meanwhile = lambda: answer_run(principal=principal, run_id=asking_run.id, answer="blue")
    assert "waitingFor" not in wait(principal, mode, asking_run, person)
    asking_run.refresh_from_db()
    assert asking_run.options["answer"] == "blue"


def test_no_form_is_shown_whose_answer_the_caller_may_not_record(
    principal: Principal, asking_run: Run, mode: str
) -> None:
    person = Person("accept", {"answer": "green"})
    reader = replace(principal, scopes=frozenset({"runs:read"}))
    assert wait(reader, mode, asking_run, person)["waitingFor"]["question"] == "Which color?"
    assert person.requests == []


def test_agreeing_to_open_the_page_of_a_confirmation_confirms_nothing(
    principal: Principal, mode: str, settings: Any, superuser_client: Browser
) -> None:
    settings.PUBLIC_URL = ADDRESS
    create_rule(RuleFields("confirm", tool="run_task_template", reason="test"), actor="t")
    person = Person("accept")
    result = call(principal, mode, "run_task_template", CALL, person)
    assert result.is_error
    assert not Run.objects.exists()
    (page,) = person.requests
    assert page.mode == "url"
    assert page.url.startswith(f"{ADDRESS}/confirm/")
    path = urlsplit(page.url).path
    for request in (Browser().get, Browser().post):  # an agent has the link, but no login
        response = request(path, {"answer": "confirm"})
        assert response.status_code == 302
        assert response["Location"].startswith("/admin/login/")
    assert Confirmation.objects.get().status == "waiting"
    assert b"run_task_template" in superuser_client.get(path).content
