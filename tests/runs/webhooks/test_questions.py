"""Webhooks about questions of runs: one message for each question, to those that asked for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.test import override_settings

from decisions.identity.principals import Principal
from runs.events.types import EventType
from runs.lifecycle.changes import NewEvent, Transition
from runs.lifecycle.transition import apply
from runs.models import Run, WebhookDelivery
from runs.webhooks.services import create_webhook
from tests.support.runs.webhook_receiver import Receiver
from tests.support.runs.webhooks import deliver

ASKS = {
    "type": "answer",
    "question": "Which one?",
    "suggestions": ["a"],
    "expiresAt": 2_000_000_000_000,
}


def ask(run: Run, **changed: object) -> int:
    """Suspend the run with a question."""
    asks = {**ASKS, **changed}
    values = {"status": "running", "ready": False, "waiting_for": asks}
    seq = apply(Transition(run, {}, values, events=[NewEvent(EventType.RUN_WAITING, asks)]))
    assert seq is not None
    return seq


@pytest.fixture
def run(make_run: Callable[..., Run]) -> Run:
    return make_run(status="running", subject="shop.example")


def test_a_question_is_delivered_with_its_run(
    run: Run, make_webhook: Callable[..., dict[str, str]], receiver: Receiver
) -> None:
    make_webhook(questions=True)
    ask(run)
    with override_settings(PUBLIC_URL="https://continuity.example"):
        deliver()
    [received] = receiver.requests
    body = json.loads(received.body)
    assert body["type"] == "run.waiting"
    assert body["data"] == {
        "runId": run.id,
        "templateId": "test_stepwise",
        "taskId": None,
        "subject": "shop.example",
        "question": "Which one?",
        "suggestions": ["a"],
        "expiresAt": 2_000_000_000_000,
        "link": f"https://continuity.example/admin/runs/run/{run.id}/change/",
    }


def test_each_question_of_a_run_and_its_end_are_messages_of_their_own(
    run: Run, make_webhook: Callable[..., dict[str, str]], receiver: Receiver
) -> None:
    make_webhook(questions=True)
    ask(run)
    ask(run, question="Which size?")
    assert WebhookDelivery.objects.count() == len({*WebhookDelivery.objects.values_list("id")}) == 2
    deliver()
    asked = [json.loads(one.body)["data"]["question"] for one in receiver.requests]
    assert sorted(asked) == ["Which one?", "Which size?"]


def test_a_webhook_that_did_not_ask_for_questions_gets_none(
    run: Run, make_webhook: Callable[..., dict[str, str]]
) -> None:
    assert not make_webhook()["questions"]
    ask(run)
    assert not WebhookDelivery.objects.exists()


def test_a_webhook_of_another_workspace_gets_no_question(
    run: Run, principal: Principal, receiver: Receiver
) -> None:
    elsewhere = replace(principal, workspace_id="elsewhere")
    create_webhook(principal=elsewhere, url=receiver.url, questions=True)
    ask(run)
    assert not WebhookDelivery.objects.exists()


def test_a_run_that_waits_for_a_confirmation_sends_no_question(
    run: Run, make_webhook: Callable[..., dict[str, str]]
) -> None:
    make_webhook(questions=True)
    ask(run, type="confirmation")
    assert not WebhookDelivery.objects.exists()
