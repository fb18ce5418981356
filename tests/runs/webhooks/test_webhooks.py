"""Webhooks: which runs they receive, what is sent, and to which addresses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from decisions.foundation.errors import Conflict, InvalidInput, TrustNotAllowed, WebhookNotFound
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.lifecycle.changes import Transition
from runs.lifecycle.state_machine import move
from runs.models import Run, RunStatus, Webhook, WebhookDelivery
from runs.submission.cancel import cancel_run
from runs.submission.retry import retry_run
from runs.webhooks import services
from runs.webhooks.deliveries import WebhookResponse, claim_due_deliveries, settle
from tests.support.runs.webhook_receiver import Receiver
from tests.support.runs.webhooks import audit_actions, deliver, is_signed, submit_canceled

Submit = Callable[..., str]
Make = Callable[..., dict[str, Any]]


def test_the_end_of_a_run_is_sent_once_and_signed(
    make_webhook: Make, receiver: Receiver, submit: Submit, principal: Principal
) -> None:
    webhook = make_webhook()
    run_id = submit_canceled(submit, principal)
    deliver()
    [received] = receiver.requests
    body = json.loads(received.body)
    assert body["type"] == "run.canceled"
    assert (body["data"]["runId"], body["data"]["status"]) == (run_id, "canceled")
    assert "result" not in body["data"]
    assert is_signed(received, webhook["secret"])
    row = WebhookDelivery.objects.get()
    assert (row.status, row.attempts, row.status_code) == ("delivered", 1, 200)
    assert received.headers["webhook-id"] == row.id
    assert audit_actions() == ["webhook.created", "webhook_delivery.delivered"]


@pytest.mark.parametrize("status", ["succeeded", "failed", "partial_success", "canceled"])
def test_every_final_status_is_sent(
    make_webhook: Make, receiver: Receiver, make_run: Callable[..., Run], status: str
) -> None:
    make_webhook()
    run = make_run(status="running")
    change = Transition(run, {"status": RunStatus.RUNNING}, {"error": {"errorCode": "X"}})
    move(change, RunStatus(status), actor="test")
    deliver()
    assert [json.loads(request.body)["type"] for request in receiver.requests] == [f"run.{status}"]


def test_a_run_whose_end_is_rolled_back_leaves_no_delivery(
    make_webhook: Make, make_run: Callable[..., Run]
) -> None:
    make_webhook()
    change = Transition(make_run(status="running"), {"status": RunStatus.RUNNING})
    with transaction.atomic():
        move(change, RunStatus.SUCCEEDED, actor="test")
        assert WebhookDelivery.objects.count() == 1
        transaction.set_rollback(True)
    assert WebhookDelivery.objects.count() == 0


def test_a_webhook_can_be_limited_to_runs_that_name_it(
    make_webhook: Make, receiver: Receiver, submit: Submit, principal: Principal
) -> None:
    named = make_webhook(every_run=False)["webhookId"]
    submit_canceled(submit, principal)
    run_id = submit_canceled(submit, principal, webhookId=named)
    assert [row.run_id for row in WebhookDelivery.objects.all()] == [run_id]
    retried = retry_run(principal=principal, run_id=run_id).run_id
    cancel_run(principal=principal, run_id=retried)
    assert WebhookDelivery.objects.filter(run_id=retried).count() == 1


def test_a_submit_that_names_an_unusable_webhook_is_refused(
    make_webhook: Make,
    submit: Submit,
    principal: Principal,
    outsider: Principal,
    receiver: Receiver,
) -> None:
    foreign = services.create_webhook(principal=outsider, url=receiver.url)["webhookId"]
    disabled = make_webhook()["webhookId"]
    services.disable_webhook(principal=principal, webhook_id=disabled)
    for webhook_id in ("hook_missing", foreign, disabled):
        with pytest.raises(InvalidInput, match=r"options\.webhookId"):
            submit(options={"webhookId": webhook_id})
    assert Run.objects.count() == 0


def test_webhooks_of_other_workspaces_receive_nothing(
    outsider: Principal, receiver: Receiver, submit: Submit, principal: Principal
) -> None:
    services.create_webhook(principal=outsider, url=receiver.url)
    submit_canceled(submit, principal)
    assert WebhookDelivery.objects.count() == 0


def test_the_secret_is_in_no_row_and_only_in_the_first_answer(
    make_webhook: Make, submit: Submit, principal: Principal
) -> None:
    webhook = make_webhook()
    secret = webhook.pop("secret").removeprefix("whsec_")
    submit_canceled(submit, principal)
    deliver()
    shown = [
        services.get_webhook(principal=principal, webhook_id=webhook["webhookId"]),
        webhook,
        services.list_webhooks(principal=principal),
    ]
    assert "secret" not in str(shown)
    with connection.cursor() as cursor:
        for table in ("runs_webhook", "runs_webhookdelivery", "decisions_auditentry"):
            cursor.execute(f"SELECT * FROM {table}")  # noqa: S608
            rows = [
                bytes(value) if isinstance(value, memoryview) else value
                for row in cursor.fetchall()
                for value in row
            ]
            assert secret not in str(rows)


def test_a_remote_caller_can_only_name_public_addresses(remote: Principal) -> None:
    for url in (
        "http://127.0.0.1/x",
        "http://localhost/",
        "http://10.0.0.1/",
        "http://169.254.1.1/",
    ):
        with pytest.raises(TrustNotAllowed):
            services.create_webhook(principal=remote, url=url)
    for url in ("ftp://example.com/", "file:///etc/passwd", "http://u:p@example.com/", "nonsense"):
        with pytest.raises(InvalidInput):
            services.create_webhook(principal=remote, url=url)
    webhook = services.create_webhook(principal=remote, url="https://example.com/x")
    Webhook.objects.filter(id=webhook["webhookId"]).update(url="http://127.0.0.1:1/")
    assert Webhook.objects.get().trust == "remote"


def test_a_workspace_has_a_limit_of_webhooks(make_webhook: Make) -> None:
    for _ in range(services.MAX_WEBHOOKS):
        make_webhook()
    with pytest.raises(Conflict):
        make_webhook()


def test_deleting_a_webhook_deletes_its_deliveries(
    make_webhook: Make, submit: Submit, principal: Principal, outsider: Principal
) -> None:
    webhook_id = make_webhook()["webhookId"]
    submit_canceled(submit, principal)
    with pytest.raises(WebhookNotFound):
        services.delete_webhook(principal=outsider, webhook_id=webhook_id)
    [claim] = claim_due_deliveries(limit=1)
    services.delete_webhook(principal=principal, webhook_id=webhook_id)
    assert not settle(claim, WebhookResponse(200))
    assert (Webhook.objects.count(), WebhookDelivery.objects.count()) == (0, 0)
    assert AuditEntry.objects.get(action="webhook.deleted").resource_id == webhook_id
