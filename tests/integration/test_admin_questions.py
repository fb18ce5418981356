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
from tests.support.model_server import ModelServer
from tests.support.model_turns import Call, Turn, complete

pytest_plugins = [
    "tests.support.admin_fixtures",
    "tests.support.workspace_fixtures",
    "tests.support.model_fixtures",
    "tests.support.agent_fixtures",
]
MakeRun = Callable[..., Run]
Staff = Callable[..., Client]
INBOX = "/admin/decisions/decision/?status=waiting"
UNTIL = 4_000_000_000_000
EVIL = '"><script>window.ran=1</script>'


@pytest.fixture
def asking(make_run: MakeRun) -> Run:
    """Create a run that asks for a color."""
    asked = {
        "type": "answer",
        "question": f"Which? {EVIL}",
        "expiresAt": UNTIL,
        "suggestions": ["red", f"blue {EVIL}"],
    }
    return make_run(status="running", ready=False, waiting_for=asked)


def answer(client: Client, run: Run, **fields: Any) -> tuple[str, str]:
    """Send the form and return the address of the redirect and the message."""
    sent = client.post(f"/admin/runs/run/{run.id}/answer/", fields)
    assert sent.status_code == 302
    return sent["Location"], " ".join(str(told) for told in get_messages(sent.wsgi_request))


def given() -> Any:
    return Run.objects.get().options.get("answer")


def test_the_form_is_on_the_runs_page_and_in_the_inbox(
    superuser_client: Client, asking: Run
) -> None:
    for address in (f"/admin/runs/run/{asking.id}/change/", INBOX):
        page = superuser_client.get(address).content.decode()
        assert f'action="/admin/runs/run/{asking.id}/answer/"' in page
        assert '<button class="cty-button" type="submit" name="suggestion" value="red"' in page
        assert "csrfmiddlewaretoken" in page
        assert EVIL not in page
    assert "Agents ask" not in superuser_client.get("/admin/decisions/decision/").content.decode()
    assert INBOX.replace("&", "&amp;") in superuser_client.get("/admin/").content.decode()


def test_the_chosen_option_or_the_written_text_is_the_answer(
    superuser_client: Client, asking: Run
) -> None:
    page, told = answer(superuser_client, asking, asked=UNTIL, suggestion="red", content="ignored")
    assert (given(), "continues" in told) == ("red", True)
    assert page.endswith(f"/{asking.id}/change/")
    assert AuditEntry.objects.get(action="run.answered").actor == "admin:boss"
    Run.objects.update(ready=False, waiting_for=asking.waiting_for)
    page, _ = answer(
        superuser_client, asking, asked=UNTIL, content=" my own\r\nwords ", back="inbox"
    )
    assert (given(), page) == ("my own\nwords", INBOX)


def test_a_late_answer_gets_an_explanation(superuser_client: Client, asking: Run) -> None:
    answer(superuser_client, asking, asked=UNTIL, suggestion="red")
    assert "answered already" in answer(superuser_client, asking, asked=UNTIL, suggestion="blue")[1]
    Run.objects.update(
        ready=False, waiting_for={**(asking.waiting_for or {}), "expiresAt": UNTIL + 1}
    )
    assert (
        "asks another one now"
        in answer(superuser_client, asking, asked=UNTIL, suggestion="blue")[1]
    )
    superuser_client.post(f"/admin/runs/run/{asking.id}/cancel/")
    assert (
        "it has ended (canceled)"
        in answer(superuser_client, asking, asked=UNTIL, suggestion="blue")[1]
    )
    assert given() == "red"
    assert AuditEntry.objects.filter(action="run.answered").count() == 1


@pytest.mark.parametrize("bad", ["", "   ", "a\0b", "x" * 65_537])
def test_an_invalid_answer_is_rejected_with_a_message(
    superuser_client: Client, asking: Run, bad: str
) -> None:
    assert "1 to 65536 characters" in answer(superuser_client, asking, asked=UNTIL, content=bad)[1]
    assert Run.objects.get().waiting_for is not None


def test_a_rule_that_denies_answers_also_applies_here(
    superuser_client: Client, asking: Run
) -> None:
    create_rule(RuleFields("deny", tool="answer_task_run"), actor="t")
    assert "Not answered" in answer(superuser_client, asking, asked=UNTIL, suggestion="red")[1]
    assert given() is None


def test_answering_needs_its_permission(staff_client: Staff, asking: Run) -> None:
    viewer = staff_client("runs.view_run", "decisions.view_decision")
    for address in (f"/admin/runs/run/{asking.id}/change/", INBOX):
        page = viewer.get(address).content.decode()
        assert "no permission to answer it" in page
        assert "/answer/" not in page
    assert viewer.post(f"/admin/runs/run/{asking.id}/answer/", {"content": "x"}).status_code == 403
    decider = staff_client("decisions.view_decision", "decisions.change_confirmation")
    assert asking.id not in decider.get(INBOX).content.decode()
    assert given() is None


def test_an_answer_is_a_post_from_the_same_site(superuser_client: Client, asking: Run) -> None:
    assert superuser_client.get(f"/admin/runs/run/{asking.id}/answer/").status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = superuser_client.cookies
    sent = strict.post(f"/admin/runs/run/{asking.id}/answer/", {"content": "x"})
    assert (sent.status_code, given()) == (403, None)
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
    ask = Call("ask_followup_question", {"question": "Which?", "suggestions": ["red"]})
    model.script = [Turn("", [ask]), complete("Red it is.")]
    superuser_client.post("/admin/runs/task/new/", {"content": "Paint it."})
    task = Task.objects.get()
    worker.work()
    run = Run.objects.get()
    at = f"/admin/runs/task/{task.id}/answer/"
    fields = {"runId": run.id, "asked": run.waiting_for["expiresAt"], "suggestion": "red"}
    assert staff_client("runs.view_task").post(at, fields).status_code == 403
    page: dict[str, Any] = {"headers": {"X-Requested-With": "fetch"}}
    other = {**fields, "runId": make_run(waiting_for=run.waiting_for, ready=False).id}
    assert superuser_client.post(at, other, **page).json()["errorCode"] == "INVALID_PARAMETER"
    late = {**fields, "asked": fields["asked"] - 1}
    assert "another one now" in superuser_client.post(at, late, **page).json()["message"]
    assert superuser_client.post(at, fields, **page).json() == {"ok": True}
    assert "answered already" in superuser_client.post(at, fields, **page).json()["message"]
    worker.work()
    said = list(TaskMessage.objects.order_by("number").values_list("content", flat=True))
    assert said == ["Paint it.", "Which?", "red", "Red it is."]
