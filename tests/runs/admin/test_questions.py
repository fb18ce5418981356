"""Answering the questions of agents in the admin site: a run's page, the inbox, and a task's
page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client

from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.models import AuditEntry
from runs.models import Run, Task, TaskMessage
from runs.worker.worker import WorkerProcess
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete

MakeRun = Callable[..., Run]
Staff = Callable[..., Client]
INBOX = "/admin/decisions/decision/?status=waiting"
EXPIRES_AT = 4_000_000_000_000
EVIL = '"><script>window.ran=1</script>'


@pytest.fixture
def waiting_run(make_run: MakeRun) -> Run:
    """Create a run that asks for a color."""
    question = {
        "type": "answer",
        "question": f"Which? {EVIL}",
        "expiresAt": EXPIRES_AT,
        "suggestions": ["red", f"blue {EVIL}"],
    }
    return make_run(status="running", ready=False, waiting_for=question)


def answer(client: Client, run: Run, **fields: Any) -> tuple[str, str]:
    """Send the form and return the address of the redirect and the message."""
    response = client.post(f"/admin/runs/run/{run.id}/answer/", fields)
    assert response.status_code == 302
    return response["Location"], " ".join(
        str(message) for message in get_messages(response.wsgi_request)
    )


def stored_answer() -> Any:
    return Run.objects.get().options.get("answer")


def test_the_form_is_on_the_runs_page_and_in_the_inbox(
    superuser_client: Client, waiting_run: Run
) -> None:
    for address in (f"/admin/runs/run/{waiting_run.id}/change/", INBOX):
        page = superuser_client.get(address).content.decode()
        assert f'action="/admin/runs/run/{waiting_run.id}/answer/"' in page
        assert '<button class="cty-button" type="submit" name="suggestion" value="red"' in page
        assert "csrfmiddlewaretoken" in page
        assert "The question expires in " in page
        assert EVIL not in page
    assert "Agents ask" not in superuser_client.get("/admin/decisions/decision/").content.decode()
    assert INBOX.replace("&", "&amp;") in superuser_client.get("/admin/").content.decode()


def test_hidden_characters_of_a_question_are_written_out(
    superuser_client: Client, make_run: MakeRun
) -> None:
    question = {
        "type": "answer",
        "question": "Delete\u202e eteled?\x1b \u200b⟨ESC⟩\nReally? Да – нет",
        "expiresAt": EXPIRES_AT,
        "suggestions": ["ye\u2066s"],
    }
    run = make_run(status="running", ready=False, waiting_for=question)
    shown = (
        "Delete⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩ eteled?⟨ESC⟩ ⟨U+200B ZERO WIDTH SPACE⟩"
        "⟨U+27E8 MATHEMATICAL LEFT ANGLE BRACKET⟩ESC⟨U+27E9 MATHEMATICAL RIGHT ANGLE BRACKET⟩"
        "\nReally? Да – нет"
    )
    for address in (f"/admin/runs/run/{run.id}/change/", INBOX):
        page = superuser_client.get(address).content.decode()
        assert f'The agent asks</div><b class="cty-asked">{shown}</b>' in page
        assert 'value="ye\u2066s" formnovalidate>ye⟨U+2066 LEFT-TO-RIGHT ISOLATE⟩s<' in page
    assert shown.replace("\n", " ") in superuser_client.get("/admin/").content.decode()


def test_the_chosen_option_or_the_written_text_is_the_answer(
    superuser_client: Client, waiting_run: Run
) -> None:
    page, message = answer(
        superuser_client, waiting_run, asked=EXPIRES_AT, suggestion="red", content="ignored"
    )
    assert (stored_answer(), "continues" in message) == ("red", True)
    assert page.endswith(f"/{waiting_run.id}/change/")
    assert AuditEntry.objects.get(action="run.answered").actor == "admin:boss"
    Run.objects.update(ready=False, waiting_for=waiting_run.waiting_for)
    page, _ = answer(
        superuser_client, waiting_run, asked=EXPIRES_AT, content=" my own\r\nwords ", back="inbox"
    )
    assert (stored_answer(), page) == ("my own\nwords", INBOX)


def test_a_late_answer_gets_an_explanation(superuser_client: Client, waiting_run: Run) -> None:
    answer(superuser_client, waiting_run, asked=EXPIRES_AT, suggestion="red")
    assert (
        "answered already"
        in answer(superuser_client, waiting_run, asked=EXPIRES_AT, suggestion="blue")[1]
    )
    Run.objects.update(
        ready=False, waiting_for={**(waiting_run.waiting_for or {}), "expiresAt": EXPIRES_AT + 1}
    )
    assert (
        "asks another one now"
        in answer(superuser_client, waiting_run, asked=EXPIRES_AT, suggestion="blue")[1]
    )
    superuser_client.post(f"/admin/runs/run/{waiting_run.id}/cancel/")
    assert (
        "it has ended (canceled)"
        in answer(superuser_client, waiting_run, asked=EXPIRES_AT, suggestion="blue")[1]
    )
    assert stored_answer() == "red"
    assert AuditEntry.objects.filter(action="run.answered").count() == 1


@pytest.mark.parametrize("bad", ["", "   ", "a\0b", "x" * 65_537])
def test_an_invalid_answer_is_rejected_with_a_message(
    superuser_client: Client, waiting_run: Run, bad: str
) -> None:
    assert (
        "1 to 65536 characters"
        in answer(superuser_client, waiting_run, asked=EXPIRES_AT, content=bad)[1]
    )
    assert Run.objects.get().waiting_for is not None


def test_a_rule_that_denies_answers_also_applies_here(
    superuser_client: Client, waiting_run: Run
) -> None:
    create_rule(RuleFields("deny", tool="answer_task_run", reason="test"), actor="t")
    assert (
        "Not answered"
        in answer(superuser_client, waiting_run, asked=EXPIRES_AT, suggestion="red")[1]
    )
    assert stored_answer() is None


def test_answering_needs_its_permission(staff_client: Staff, waiting_run: Run) -> None:
    viewer = staff_client("runs.view_run", "decisions.view_decision")
    for address in (f"/admin/runs/run/{waiting_run.id}/change/", INBOX):
        page = viewer.get(address).content.decode()
        assert "no permission to answer it" in page
        assert "/answer/" not in page
    assert (
        viewer.post(f"/admin/runs/run/{waiting_run.id}/answer/", {"content": "x"}).status_code
        == 403
    )
    decider = staff_client("decisions.view_decision", "decisions.change_confirmation")
    assert waiting_run.id not in decider.get(INBOX).content.decode()
    assert stored_answer() is None


def test_an_answer_is_a_post_from_the_same_site(superuser_client: Client, waiting_run: Run) -> None:
    assert superuser_client.get(f"/admin/runs/run/{waiting_run.id}/answer/").status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = superuser_client.cookies
    response = strict.post(f"/admin/runs/run/{waiting_run.id}/answer/", {"content": "x"})
    assert (response.status_code, stored_answer()) == (403, None)
    assert (
        superuser_client.post("/admin/runs/run/run_none/answer/", {"content": "x"}).status_code
        == 404
    )


@pytest.mark.usefixtures("agent_settings", "project")
def test_on_the_page_of_a_task_only_its_current_question_is_answered(
    superuser_client: Client,
    staff_client: Staff,
    model: ModelServer,
    worker: WorkerProcess,
    make_run: MakeRun,
) -> None:
    question = Call("ask_followup_question", {"question": "Which?", "suggestions": ["red"]})
    model.script = [Turn("", [question]), complete("Red it is.")]
    superuser_client.post("/admin/runs/task/new/", {"content": "Paint it."})
    task = Task.objects.get()
    worker.work()
    run = Run.objects.get()
    url = f"/admin/runs/task/{task.id}/answer/"
    fields = {"runId": run.id, "asked": run.waiting_for["expiresAt"], "suggestion": "red"}
    assert staff_client("runs.view_task").post(url, fields).status_code == 403
    fetch_headers: dict[str, Any] = {"headers": {"X-Requested-With": "fetch"}}
    other = {**fields, "runId": make_run(waiting_for=run.waiting_for, ready=False).id}
    assert (
        superuser_client.post(url, other, **fetch_headers).json()["errorCode"]
        == "INVALID_PARAMETER"
    )
    late = {**fields, "asked": fields["asked"] - 1}
    assert "another one now" in superuser_client.post(url, late, **fetch_headers).json()["message"]
    assert superuser_client.post(url, fields, **fetch_headers).json() == {"ok": True}
    assert (
        "answered already" in superuser_client.post(url, fields, **fetch_headers).json()["message"]
    )
    worker.work()
    contents = list(TaskMessage.objects.order_by("number").values_list("content", flat=True))
    assert contents == ["Paint it.", "Which?", "red", "Red it is."]
