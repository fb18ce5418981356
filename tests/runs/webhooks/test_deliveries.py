"""Webhook deliveries: retried until they are accepted, sent by one deliverer at a time, and
replayed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from decisions.foundation.errors import Conflict
from decisions.foundation.infra.staleness import ChangeWatch
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.models import Webhook, WebhookDelivery
from runs.webhooks import deliverer, deliveries, services
from runs.webhooks.deliverer import Deliverer
from runs.webhooks.deliveries import (
    MAX_ATTEMPTS,
    WebhookResponse,
    claim_due_deliveries,
    retry_delay_s,
    settle,
)
from tests.support.runs.concurrent_calls import at_once
from tests.support.runs.waiting import wait_until
from tests.support.runs.webhook_receiver import Receiver, run_receiver
from tests.support.runs.webhooks import audit_actions, deliver, is_signed, make_due, submit_canceled

Submit = Callable[..., str]
Make = Callable[..., dict[str, Any]]


@pytest.mark.slow
def test_a_refused_delivery_is_retried_later_with_the_same_message(
    make_webhook: Make, submit: Submit, principal: Principal, receiver: Receiver
) -> None:
    receiver.statuses = [500, 302, 204]
    webhook = make_webhook()
    submit_canceled(submit, principal)
    for _ in range(3):
        deliver()
        make_due()
    first, *retries = receiver.requests
    assert len(retries) == 2
    assert all(
        (request.body, request.headers["webhook-id"]) == (first.body, first.headers["webhook-id"])
        for request in retries
    )
    assert all(is_signed(request, webhook["secret"]) for request in receiver.requests)
    row = WebhookDelivery.objects.get()
    assert (row.status, row.attempts, row.status_code) == ("delivered", 3, 204)


def test_a_webhook_with_an_unreadable_secret_does_not_block_others(
    make_webhook: Make, submit: Submit, principal: Principal, receiver: Receiver
) -> None:
    broken, _ = make_webhook(), make_webhook()
    Webhook.objects.filter(id=broken["webhookId"]).update(secret=b"sealed with a key of before")
    submit_canceled(submit, principal)
    deliver()
    assert len(receiver.requests) == 1
    row = WebhookDelivery.objects.get(webhook_id=broken["webhookId"])
    assert (row.status, row.attempts) == ("pending", 1)
    assert "cannot be read" in row.error


def test_the_delays_grow_to_a_day_and_vary() -> None:
    delays = [retry_delay_s(attempt) for attempt in range(1, MAX_ATTEMPTS)]
    assert delays == sorted(delays)
    assert 15 * 0.8 <= delays[0] <= 15 * 1.2
    assert 18 * 3600 < sum(delays) < 28 * 3600
    assert len({retry_delay_s(1) for _ in range(20)}) > 10


def test_clock_jumps_neither_end_an_attempt_nor_start_a_second_one(
    make_webhook: Make, submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_webhook()
    submit_canceled(submit, principal)
    [claim] = claim_due_deliveries(limit=1)
    watch = ChangeWatch()
    for days in (1, -2, 400):
        jumped = partial(lambda by, tz: datetime.now(tz) + timedelta(days=by), days)
        monkeypatch.setattr(deliveries, "datetime", SimpleNamespace(now=jumped))
        assert (deliveries.release_lost(watch), claim_due_deliveries(limit=1)) == (0, [])
    assert settle(claim, WebhookResponse(200))


def test_an_abandoned_attempt_becomes_due_again_by_the_monotonic_clock(
    make_webhook: Make, submit: Submit, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook = make_webhook()
    submit_canceled(submit, principal)
    [lost] = claim_due_deliveries(limit=1)
    watch = ChangeWatch()
    assert deliveries.release_lost(watch) == 0
    listed = services.list_deliveries(principal=principal, webhook_id=webhook["webhookId"])
    assert listed["deliveries"][0]["nextTryAt"] is None
    monkeypatch.setattr(deliveries, "LOST_AFTER_S", 0.0)
    assert sum(at_once([lambda: deliveries.release_lost(ChangeWatch())] * 4)) == 1
    assert not settle(lost, WebhookResponse(200))
    [again] = claim_due_deliveries(limit=1)
    assert (again.id, again.attempts) == (lost.id, 2)
    assert settle(again, WebhookResponse(200))
    assert deliveries.release_lost(watch) == 0


def test_a_delivery_is_given_up_after_the_last_attempt(
    make_webhook: Make, submit: Submit, principal: Principal
) -> None:
    make_webhook()
    submit_canceled(submit, principal)
    for _ in range(MAX_ATTEMPTS):
        [claim] = claim_due_deliveries(limit=5)
        assert claim_due_deliveries(limit=5) == []
        assert settle(claim, WebhookResponse(503, "answered 503"))
        make_due()
    assert claim_due_deliveries(limit=5) == []
    row = WebhookDelivery.objects.get()
    assert (row.status, row.attempts, row.error) == ("failed", MAX_ATTEMPTS, "answered 503")
    assert audit_actions()[-1] == "webhook_delivery.failed"


def test_an_address_that_answers_gone_receives_nothing_more(
    make_webhook: Make, submit: Submit, principal: Principal, receiver: Receiver
) -> None:
    receiver.statuses = [410]
    webhook = make_webhook()
    submit_canceled(submit, principal)
    submit_canceled(submit, principal)
    deliver()
    submit_canceled(submit, principal)
    assert len(receiver.requests) == 1
    assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"failed"}
    assert WebhookDelivery.objects.count() == 2
    shown = services.get_webhook(principal=principal, webhook_id=webhook["webhookId"])
    assert (shown["enabled"], "410" in shown["reason"]) == (False, True)
    assert "webhook.disabled" in audit_actions()


def fail_after(days: float, attempt: int = MAX_ATTEMPTS) -> None:
    """Make an attempt of the delivery that is due, which fails, `days` after the first failure."""
    Webhook.objects.filter(failing_since__isnull=False).update(
        failing_since=datetime.now(UTC) - timedelta(days=days)
    )
    WebhookDelivery.objects.update(status="pending", attempts=attempt - 1)
    make_due()
    [lease] = claim_due_deliveries(limit=1)
    assert settle(lease, WebhookResponse(502, "answered 502"))


def test_an_address_that_only_fails_for_five_days_is_disabled_until_a_person_enables_it(
    make_webhook: Make, submit: Submit, principal: Principal, receiver: Receiver
) -> None:
    webhook_id = make_webhook()["webhookId"]
    submit_canceled(submit, principal)
    fail_after(0)
    fail_after(4.9)
    fail_after(30, attempt=1)  # after a month without a delivery
    assert services.get_webhook(principal=principal, webhook_id=webhook_id)["enabled"]
    fail_after(5.1)
    shown = services.get_webhook(principal=principal, webhook_id=webhook_id)
    assert not shown["enabled"]
    assert shown["reason"] == "all attempts failed for 5 days; the last: answered 502"
    row = AuditEntry.objects.get(action="webhook.disabled")
    assert (row.actor, row.metadata["because"]) == ("webhooks", shown["reason"])
    assert claim_due_deliveries(limit=1) == []

    services.enable_webhook(principal=principal, webhook_id=webhook_id)
    kept = WebhookDelivery.objects.get()
    services.replay_delivery(principal=principal, webhook_id=webhook_id, delivery_id=kept.id)
    fail_after(0, attempt=1)
    assert services.get_webhook(principal=principal, webhook_id=webhook_id)["enabled"]
    make_due()
    deliver()
    assert len(receiver.requests) == 1


def test_a_delivery_that_succeeds_ends_the_time_of_failures(
    make_webhook: Make, submit: Submit, principal: Principal
) -> None:
    make_webhook()
    submit_canceled(submit, principal)
    fail_after(0, attempt=1)
    make_due()
    [lease] = claim_due_deliveries(limit=1)
    assert settle(lease, WebhookResponse(204))
    assert Webhook.objects.get().failing_since is None


def test_one_deliverer_sends_a_delivery(
    make_webhook: Make, submit: Submit, principal: Principal
) -> None:
    make_webhook()
    submit_canceled(submit, principal)
    claims = at_once([lambda: claim_due_deliveries(limit=5)] * 8)
    assert sum(len(claimed) for claimed in claims) == 1


def test_a_killed_deliverer_is_replaced_and_its_late_result_is_refused(
    make_webhook: Make, submit: Submit, principal: Principal, receiver: Receiver
) -> None:
    make_webhook()
    submit_canceled(submit, principal)
    [lost] = claim_due_deliveries(limit=1)
    deliver(0.2)
    assert receiver.requests == []
    make_due()  # its lease has expired
    deliver()
    assert len(receiver.requests) == 1
    assert not settle(lost, WebhookResponse(500, "answered 500"))
    assert WebhookDelivery.objects.get().status == "delivered"


def test_a_slow_address_does_not_delay_others(
    make_webhook: Make, submit: Submit, principal: Principal, receiver: Receiver
) -> None:
    make_webhook()
    for _ in range(5):
        submit_canceled(submit, principal)
    with run_receiver() as quick:
        make_webhook(url=quick.url)
        submit_canceled(submit, principal)
        receiver.delay_s = 0.5
        deliver(0.4)
        assert len(quick.requests) == 1
    assert (receiver.most_at_once, len(receiver.requests) < 5) == (1, True)


def test_a_deliverer_goes_on_after_a_defect(
    make_webhook: Make,
    submit: Submit,
    principal: Principal,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_webhook()
    submit_canceled(submit, principal)
    original = deliveries.release_lost
    failed: list[bool] = []

    def fail_once(watch: ChangeWatch) -> int:
        if not failed:
            failed.append(True)
            raise ZeroDivisionError("a defect")
        return original(watch)

    monkeypatch.setattr(deliveries, "release_lost", fail_once)
    running = Deliverer()
    running.start()
    try:
        wait_until(lambda: receiver.requests, within_s=20)
    finally:
        running.stop()
    assert failed


async def send_until_idle(running: Deliverer, receiver: Receiver, count: int) -> None:
    sending = asyncio.create_task(running.work())
    try:
        async with asyncio.timeout(20):
            while len(receiver.requests) < count:
                await asyncio.sleep(0.02)
    finally:
        sending.cancel()
        await asyncio.wait({sending})


def test_messages_of_one_webhook_follow_each_other_without_a_pause(
    make_webhook: Make,
    submit: Submit,
    principal: Principal,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deliverer, "POLL_S", 3600.0)
    make_webhook()
    for _ in range(3):
        submit_canceled(submit, principal)
    asyncio.run(send_until_idle(Deliverer(), receiver, 3))
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 3


def test_a_replayed_delivery_starts_again_under_the_same_id(
    make_webhook: Make, submit: Submit, principal: Principal, receiver: Receiver
) -> None:
    webhook = make_webhook()
    submit_canceled(submit, principal)
    deliver()
    row = WebhookDelivery.objects.get()
    arguments = {"principal": principal, "webhook_id": webhook["webhookId"], "delivery_id": row.id}
    again = services.replay_delivery(**arguments)
    assert (again["status"], again["attempts"]) == ("pending", 0)
    deliver()
    assert [request.headers["webhook-id"] for request in receiver.requests] == [row.id, row.id]
    assert "webhook.replayed" in audit_actions()
    services.disable_webhook(principal=principal, webhook_id=webhook["webhookId"])
    with pytest.raises(Conflict):
        services.replay_delivery(**arguments)


def test_a_replay_takes_over_a_delivery_whose_attempt_is_in_flight(
    make_webhook: Make, submit: Submit, principal: Principal
) -> None:
    webhook = make_webhook()
    submit_canceled(submit, principal)
    [in_flight] = claim_due_deliveries(limit=1)
    services.replay_delivery(
        principal=principal, webhook_id=webhook["webhookId"], delivery_id=in_flight.id
    )
    assert not settle(in_flight, WebhookResponse(500))
    [claim] = claim_due_deliveries(limit=1)
    assert claim.attempts == 1
