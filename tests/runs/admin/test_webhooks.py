"""Webhooks in the admin site: created with a secret displayed once, paused, deliveries listed and
replayed, each action audited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from decisions.admin import acting
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.models import Webhook, WebhookDelivery
from runs.submission.cancel import cancel_run
from runs.webhooks import services
from runs.webhooks.deliveries import MAX_ATTEMPTS, WebhookResponse, claim_due_deliveries, settle

HOOKS, DELIVERIES = "/admin/runs/webhook/", "/admin/runs/webhookdelivery/"
FORM: dict[str, Any] = {"url": "http://127.0.0.1:9/x", "name": "mine", "workspace": "local"}


@pytest.fixture
def failed(principal: Principal, submit: Callable[..., str]) -> WebhookDelivery:
    """Create a delivery that has failed for good."""
    services.create_webhook(principal=principal, url="http://127.0.0.1:9/", name="mine")
    cancel_run(principal=principal, run_id=submit())
    WebhookDelivery.objects.update(attempts=MAX_ATTEMPTS - 1)
    [claimed] = claim_due_deliveries(limit=1)
    settle(claimed, WebhookResponse(503, "answered 503"))
    return WebhookDelivery.objects.get()


def test_a_webhook_is_created_and_its_secret_is_displayed_once(superuser_client: Client) -> None:
    response = superuser_client.post(HOOKS + "new/", FORM)
    hook = Webhook.objects.get()
    secret = response.context["secret"]
    assert secret in response.content.decode()
    assert "no-store" in response["Cache-Control"]
    assert (hook.every_run, hook.trust, hook.created_by) == (False, "local", "admin:boss")
    for path in (HOOKS, f"{HOOKS}{hook.id}/change/", "/admin/decisions/auditentry/"):
        page = superuser_client.get(path)
        assert page.status_code == 200
        assert secret not in page.content.decode()


def test_an_invalid_form_creates_no_webhook(superuser_client: Client) -> None:
    for wrong in (
        {"url": "ftp://x/"},
        {"url": ""},
        {"name": "<svg onload=1>"},
        {"workspace": "a\0"},
    ):
        response = superuser_client.post(HOOKS + "new/", {**FORM, **wrong})
        assert (response.status_code, "cty-error" in response.content.decode()) == (200, True), (
            wrong
        )
    assert not Webhook.objects.exists()


def test_a_failed_delivery_is_listed_and_replayed(
    superuser_client: Client, failed: WebhookDelivery
) -> None:
    page, run_id = (
        superuser_client.get(DELIVERIES, {"status": "failed"}).content.decode(),
        str(failed.run_id),
    )
    for word in ("answered 503", "503", str(MAX_ATTEMPTS), run_id, "mine"):
        assert word in page
    assert superuser_client.get(f"{DELIVERIES}{failed.id}/change/").status_code == 200
    for term in (failed.id, run_id, failed.webhook_id):
        assert run_id in superuser_client.get(DELIVERIES, {"q": term}).content.decode()
    assert run_id not in superuser_client.get(DELIVERIES, {"q": "msg_other"}).content.decode()
    superuser_client.post(
        DELIVERIES, {"action": "replay_selected", "_selected_action": [failed.id]}
    )
    failed.refresh_from_db()
    assert (failed.status, failed.attempts) == ("pending", 0)
    assert AuditEntry.objects.get(action="webhook.replayed").actor == "admin:boss"


def test_a_paused_webhook_has_no_delivery_replayed(
    superuser_client: Client, failed: WebhookDelivery
) -> None:
    selection = {"_selected_action": [failed.webhook_id]}
    superuser_client.post(HOOKS, {"action": "disable_selected", **selection})
    assert "disabled" in superuser_client.get(HOOKS).content.decode()
    replay = {"action": "replay_selected", "_selected_action": [failed.id]}
    response = superuser_client.post(DELIVERIES, replay, follow=True)
    assert "enable it first" in response.content.decode()
    superuser_client.post(HOOKS, {"action": "enable_selected", **selection})
    assert Webhook.objects.get().disabled_at is None
    entries = AuditEntry.objects.filter(action__in=["webhook.disabled", "webhook.enabled"])
    assert {row.actor for row in entries} == {"admin:boss"}


def test_an_action_on_too_many_rows_is_refused(
    superuser_client: Client, failed: WebhookDelivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acting, "ACTION_ROWS", 0)
    replay = {"action": "replay_selected", "_selected_action": [failed.id]}
    response = superuser_client.post(DELIVERIES, replay, follow=True)
    assert "Select at most 0 rows; nothing was done." in response.content.decode()
    failed.refresh_from_db()
    assert failed.status == "failed"


def test_every_action_needs_its_permission(
    staff_client: Callable[..., Client], failed: WebhookDelivery
) -> None:
    reader = staff_client("runs.view_webhook", "runs.view_webhookdelivery")
    assert reader.get(DELIVERIES).status_code == reader.get(HOOKS).status_code == 200
    assert reader.post(HOOKS + "new/", FORM).status_code == 403
    for list_url, action, row in (
        (HOOKS, "disable_selected", failed.webhook_id),
        (DELIVERIES, "replay_selected", failed.id),
    ):
        reader.post(list_url, {"action": action, "_selected_action": [row]})
    failed.refresh_from_db()
    assert (failed.status, Webhook.objects.get().disabled_at) == ("failed", None)
    client_without_permissions = staff_client()
    assert (
        client_without_permissions.get(DELIVERIES).status_code
        == client_without_permissions.get(HOOKS).status_code
        == 403
    )
