"""E-mails about what waits for a person: one for each decision and question, and retries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core import mail

from decisions.authorization.confirmations import open_confirmation
from decisions.identity.principals import Principal
from decisions.models import Decision
from runs.models import Run, WaitingEmail
from runs.scheduler.waiting_emails import MAX_ATTEMPTS, send_waiting_emails
from tests.support.decisions.continuity import create_decision

ASKS = {"type": "answer", "question": "Which account?", "expiresAt": 2_000_000_000_000}
MakeRun = Callable[..., Run]


@pytest.fixture(autouse=True)
def _configured(settings: Any) -> None:
    settings.WAITING_EMAIL_TO, settings.DEFAULT_FROM_EMAIL = ["ops@example.org"], "c@example.org"
    settings.PUBLIC_URL = "https://continuity.example"


@pytest.fixture
def question(make_run: MakeRun) -> Run:
    """Create a run that asks."""
    return make_run(status="running", ready=False, waiting_for=ASKS, subject="shop.example")


def open_decision(principal: Principal) -> Decision:
    decision = create_decision(principal)
    decision.kind, decision.tool = "tool", "write_to_file\r\nBcc: x@example.org"
    decision.save()
    open_confirmation(decision)
    return decision


def make_due() -> None:
    WaitingEmail.objects.update(next_try_at=datetime.now(UTC) - timedelta(seconds=1))


def test_a_question_is_sent_once_with_its_run_and_a_link(question: Run) -> None:
    assert send_waiting_emails() == 1
    assert send_waiting_emails() == 0
    [sent] = mail.outbox
    assert (sent.to, sent.from_email) == (["ops@example.org"], "c@example.org")
    assert sent.subject == "[Continuity] Waiting for a person: Which account?"
    for text in (
        "Answer: Which account?",
        "shop.example",
        f"https://continuity.example/admin/runs/run/{question.id}/change/",
        "Until: 2033-05-18 03:33 UTC",
    ):
        assert text in sent.body, text


def test_what_waits_together_is_one_email_and_a_name_cannot_add_a_header(
    question: Run, principal: Principal
) -> None:
    open_decision(principal)
    assert send_waiting_emails() == 2
    [sent] = mail.outbox
    assert sent.subject.endswith("and 1 more")
    assert "\n" not in sent.subject
    assert sent.message()["Bcc"] is None
    assert "In all 2 wait" in sent.body


def test_what_is_decided_before_the_email_is_not_sent(question: Run) -> None:
    Run.objects.filter(id=question.id).update(ready=True, waiting_for=None)
    assert send_waiting_emails() == 0
    assert mail.outbox == []


def test_a_refused_email_is_sent_later_and_given_up_in_the_end(
    question: Run, settings: Any
) -> None:
    working, settings.EMAIL_BACKEND = (
        settings.EMAIL_BACKEND,
        ("django.core.mail.backends.smtp.EmailBackend"),
    )
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    assert send_waiting_emails() == 0
    row = WaitingEmail.objects.get()
    assert (row.attempts, row.sent_at) == (1, None)
    assert "ConnectionRefusedError" in row.error
    assert send_waiting_emails() == 0  # not due
    assert WaitingEmail.objects.get().attempts == 1
    WaitingEmail.objects.update(attempts=MAX_ATTEMPTS)
    make_due()
    settings.EMAIL_BACKEND = working
    assert send_waiting_emails() == 0
    WaitingEmail.objects.update(attempts=1)
    assert send_waiting_emails() == 1
    assert WaitingEmail.objects.get().sent_at is not None


def test_another_question_of_the_run_is_another_email(question: Run) -> None:
    send_waiting_emails()
    again = {**ASKS, "question": "Which size?", "expiresAt": 2_000_000_060_000}
    Run.objects.filter(id=question.id).update(waiting_for=again)
    assert send_waiting_emails() == 1
    assert mail.outbox[1].subject.endswith("Which size?")


def test_rows_of_what_no_longer_waits_are_deleted_after_a_day(question: Run) -> None:
    send_waiting_emails()
    Run.objects.filter(id=question.id).update(ready=True, waiting_for=None)
    WaitingEmail.objects.update(created_at=datetime.now(UTC) - timedelta(days=2))
    send_waiting_emails()
    assert not WaitingEmail.objects.exists()
