"""Webhooks about waiting confirmations: signed, retried, shown in the admin, never for an agent."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from django.test import Client, override_settings

from decisions.authorization.confirmations import open_confirmation
from decisions.authorization.sealed_arguments import open_arguments
from decisions.foundation.errors import Forbidden, InvalidInput
from decisions.identity.principals import DEFAULT_SCOPES, Principal
from decisions.models import AuditEntry, Confirmation, Decision
from runs.models import Run, WebhookDelivery
from runs.webhooks import services
from runs.worker.worker import WorkerProcess
from tests.support.decisions.confirmations import decision_id, digest_shown, reload_run
from tests.support.decisions.continuity import create_decision
from tests.support.runs.webhook_receiver import Receiver
from tests.support.runs.webhooks import deliver, is_signed, make_due


@pytest.fixture
def operator(principal: Principal) -> Principal:
    return replace(principal, id="admin:ann", scopes=principal.scopes | {"confirm"})


@pytest.fixture
def webhook(operator: Principal, receiver: Receiver) -> dict[str, Any]:
    """Create a webhook that receives waiting confirmations."""
    return services.create_webhook(
        principal=operator, url=receiver.url, every_run=False, confirmations=True
    )


def received_body(receiver: Receiver) -> dict[str, Any]:
    [received] = receiver.requests
    body: dict[str, Any] = json.loads(received.body)
    return body


def test_a_waiting_confirmation_is_delivered_once_and_signed(
    worker: WorkerProcess,
    submit_calls: Callable[..., Run],
    webhook: dict[str, Any],
    receiver: Receiver,
) -> None:
    run = submit_calls("risk:b")
    worker.work()
    deliver()
    body = received_body(receiver)
    assert body["type"] == "confirmation.waiting"
    data = body["data"]
    assert (data["decisionId"], data["runId"], data["tool"]) == (
        decision_id(run),
        run.id,
        "test_risk",
    )
    decision = Decision.objects.get()
    assert data["argumentsDigest"] == decision.subject_digest
    assert data["argumentsSize"] == len(json.dumps(open_arguments(decision)))
    assert "arguments" not in data
    assert "shownDigest" not in data
    assert is_signed(receiver.requests[0], webhook["secret"])
    assert WebhookDelivery.objects.get().status == "delivered"


def test_a_webhook_that_opts_in_gets_the_exact_arguments(
    worker: WorkerProcess, submit_calls: Callable[..., Run], operator: Principal, receiver: Receiver
) -> None:
    services.create_webhook(
        principal=operator, url=receiver.url, confirmations=True, confirmation_arguments=True
    )
    run = submit_calls("risk:echo; cookie=1; rm -f victim")
    worker.work()
    deliver()
    data = received_body(receiver)["data"]
    assert data["arguments"]["text"] == "echo; cookie=1; rm -f victim"
    assert data["shownDigest"] == digest_shown(decision_id(run))
    assert "victim" not in str(AuditEntry.objects.values_list("metadata", flat=True))


def test_a_webhook_gets_the_arguments_also_as_the_page_writes_them(
    worker: WorkerProcess, submit_calls: Callable[..., Run], operator: Principal, receiver: Receiver
) -> None:
    services.create_webhook(
        principal=operator, url=receiver.url, confirmations=True, confirmation_arguments=True
    )
    text = "a\u202eb ⟨secret token⟩ https://аррӏе.com"
    submit_calls(f"risk:{text}")
    worker.work()
    deliver()
    data = received_body(receiver)["data"]
    assert data["arguments"]["text"] == text
    [shown] = [one for one in data["argumentsShown"] if one["name"] == "text"]
    assert shown["about"] == f"text, {len(text)} characters"
    assert shown["text"].startswith("a⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩b ⟨U+27E8 MATHEMATICAL LEFT")
    assert "⟨secret" not in shown["text"]
    assert shown["text"].endswith("е⟨U+0435⟩.com")


def test_arguments_are_sent_with_confirmations_alone(
    operator: Principal, receiver: Receiver
) -> None:
    with pytest.raises(InvalidInput):
        services.create_webhook(principal=operator, url=receiver.url, confirmation_arguments=True)


@override_settings(PUBLIC_URL="https://continuity.example")
def test_the_link_in_a_delivery_works_and_is_stored_in_no_row(
    worker: WorkerProcess,
    submit_calls: Callable[..., Run],
    webhook: dict[str, Any],
    receiver: Receiver,
) -> None:
    run = submit_calls("risk:b")
    worker.work()
    deliver()
    link = received_body(receiver)["data"]["link"].removeprefix("https://continuity.example")
    rows = [*WebhookDelivery.objects.values(), *AuditEntry.objects.values()]
    assert link.rpartition("/")[2] not in str(rows)
    shown = digest_shown(decision_id(run))
    assert Client().post(link, {"answer": "confirm", "shown": shown}).status_code == 200
    worker.work()
    assert reload_run(run).status == "succeeded"


def test_a_webhook_of_the_caller_gets_no_link(
    worker: WorkerProcess,
    submit_calls: Callable[..., Run],
    principal: Principal,
    receiver: Receiver,
) -> None:
    caller = replace(principal, scopes=principal.scopes | {"confirm"})
    services.create_webhook(principal=caller, url=receiver.url, confirmations=True)
    run = submit_calls("risk:b")
    worker.work()
    deliver()
    data = received_body(receiver)["data"]
    assert data["decisionId"] == decision_id(run)
    assert data["link"] is None


def test_a_failed_delivery_is_retried(
    worker: WorkerProcess,
    submit_calls: Callable[..., Run],
    webhook: dict[str, Any],
    receiver: Receiver,
) -> None:
    receiver.statuses = [500, 200]
    submit_calls("risk:b")
    worker.work()
    deliver()
    assert WebhookDelivery.objects.get().status == "pending"
    make_due()
    deliver()
    assert (WebhookDelivery.objects.get().status, len(receiver.requests)) == ("delivered", 2)


def test_a_webhook_for_runs_receives_no_confirmation(
    worker: WorkerProcess, submit_calls: Callable[..., Run], make_webhook: Any, receiver: Receiver
) -> None:
    make_webhook()
    submit_calls("risk:b")
    worker.work()
    deliver()
    assert receiver.requests == []


def test_an_agent_cannot_create_a_webhook_for_confirmations(
    principal: Principal, api: httpx.Client, receiver: Receiver
) -> None:
    assert "confirm" not in DEFAULT_SCOPES | principal.scopes
    with pytest.raises(Forbidden):
        services.create_webhook(principal=principal, url=receiver.url, confirmations=True)
    response = api.post("/api/v1/webhooks", json={"url": receiver.url, "confirmations": True})
    assert (response.status_code, response.json()["details"]) == (403, {"scope": "confirm"})


def test_an_agent_cannot_disable_or_delete_a_webhook_for_confirmations(
    principal: Principal, operator: Principal, webhook: dict[str, Any]
) -> None:
    for action in (services.disable_webhook, services.delete_webhook):
        with pytest.raises(Forbidden):
            action(principal=principal, webhook_id=webhook["webhookId"])
    assert services.get_webhook(principal=principal, webhook_id=webhook["webhookId"])["enabled"]
    assert services.delete_webhook(principal=operator, webhook_id=webhook["webhookId"])["success"]


def test_a_webhook_of_another_workspace_receives_nothing(
    worker: WorkerProcess,
    submit_calls: Callable[..., Run],
    operator: Principal,
    outsider: Principal,
    receiver: Receiver,
) -> None:
    other_operator = replace(outsider, scopes=operator.scopes)
    services.create_webhook(principal=other_operator, url=receiver.url, confirmations=True)
    submit_calls("risk:b")
    worker.work()
    assert not WebhookDelivery.objects.exists()


def test_the_admin_shows_the_delivery(
    superuser_client: Client,
    worker: WorkerProcess,
    submit_calls: Callable[..., Run],
    webhook: dict[str, Any],
) -> None:
    submit_calls("risk:b")
    worker.work()
    number = Confirmation.objects.get().decision_id
    shown = superuser_client.get("/admin/runs/webhookdelivery/").content.decode()
    assert f"decision {number}" in shown
    assert (
        superuser_client.get(
            f"/admin/runs/webhookdelivery/{WebhookDelivery.objects.get().id}/change/"
        ).status_code
        == 200
    )


def test_a_confirmation_with_a_token_for_the_host_is_not_delivered(
    principal: Principal, webhook: dict[str, Any]
) -> None:
    for delivery, count in (("inline", 0), ("out_of_band", 1)):
        open_confirmation(create_decision(principal, mode="confirm"), delivery=delivery)
        assert WebhookDelivery.objects.count() == count


def test_a_token_of_some_users_gets_no_confirmations_of_others(
    operator: Principal, receiver: Receiver
) -> None:
    limited = replace(operator, acts_for=frozenset({"carol"}))
    with pytest.raises(Forbidden, match="some users"):
        services.create_webhook(principal=limited, url=receiver.url, confirmations=True)
    assert not services.list_webhooks(principal=operator)["webhooks"]
