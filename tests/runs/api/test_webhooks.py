"""Webhooks over REST: created, returned without the secret, refused in the common error shape,
replayed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from runs.webhooks.deliveries import WebhookResponse, claim_due_deliveries, settle
from tests.support.rest.rest import json_of, refusal, submission

HOOKS = "/api/v1/webhooks"
URL = "https://example.com/hook"


@pytest.fixture
def webhook(api: httpx.Client) -> dict[str, Any]:
    """The response to the request that creates a webhook."""
    return json_of(api.post(HOOKS, json={"url": URL, "name": "billing"}), 201)


@pytest.fixture
def delivery(api: httpx.Client, webhook: dict[str, Any]) -> str:
    """The path of a delivery for a canceled run."""
    run_id = json_of(api.post("/api/v1/runs", json=submission()), 202)["runId"]
    api.post(f"/api/v1/runs/{run_id}/cancel")
    [row] = json_of(api.get(f"{HOOKS}/{webhook['webhookId']}/deliveries"))["deliveries"]
    assert (row["runId"], row["type"], row["status"]) == (run_id, "run.canceled", "pending")
    return f"{HOOKS}/{webhook['webhookId']}/deliveries/{row['deliveryId']}"


def test_the_secret_is_returned_once(api: httpx.Client, webhook: dict[str, Any]) -> None:
    assert webhook["secret"].startswith("whsec_")
    shown = json_of(api.get(f"{HOOKS}/{webhook['webhookId']}"))
    assert shown == {name: value for name, value in webhook.items() if name != "secret"}
    assert json_of(api.get(HOOKS)) == {"webhooks": [shown]}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"url": ""},
        {"url": 5},
        {"url": URL, "secret": "chosen"},
        {"url": "x" * 2049},
        {"url": URL, "everyRun": "yes"},
        {"url": URL, "name": "a\nb"},
        {"url": URL, "name": "n" * 129},
        {"url": "ftp://example.com/"},
        {"url": "https://user:pw@example.com/"},
        {"url": "example.com"},
        {"url": "https://example.com/ x"},
        {"url": "http://exa mple/"},
        {"url": "http://[::1/"},
        [],
    ],
)
def test_an_invalid_webhook_is_refused(api: httpx.Client, body: Any) -> None:
    assert refusal(api.post(HOOKS, json=body), 400)["errorCode"] == "INVALID_PARAMETER"
    assert json_of(api.get(HOOKS)) == {"webhooks": []}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "192.168.0.1", "2130706433", "[::1]"])
def test_a_remote_token_cannot_register_a_private_address(
    client_with: Callable[..., httpx.Client], host: str
) -> None:
    answer = client_with(trust="remote").post(HOOKS, json={"url": f"http://{host}/"})
    assert refusal(answer, 400)["errorCode"] == "TRUST_LEVEL_NOT_ALLOWED"


def test_a_webhook_of_another_workspace_is_not_found(
    client_with: Callable[..., httpx.Client], webhook: dict[str, Any], delivery: str
) -> None:
    other = client_with(workspace="elsewhere")
    url = f"{HOOKS}/{webhook['webhookId']}"
    for answer in (
        other.get(url),
        other.delete(url),
        other.post(f"{url}/enable"),
        other.post(f"{url}/disable"),
        other.get(f"{url}/deliveries"),
        other.post(f"{delivery}/replay"),
        other.get(f"{HOOKS}/hook_missing"),
    ):
        assert refusal(answer, 404)["errorCode"] == "WEBHOOK_NOT_FOUND"


def test_a_failed_delivery_is_listed_and_replayed(
    api: httpx.Client, webhook: dict[str, Any], delivery: str
) -> None:
    [claim] = claim_due_deliveries(limit=1)
    settle(claim, WebhookResponse(410, "answered 410"))
    assert refusal(api.post(f"{delivery}/replay"), 409)["errorCode"] == "CONFLICT"
    assert json_of(api.post(f"{HOOKS}/{webhook['webhookId']}/enable"))["enabled"] is True
    failed = {"status": "failed"}
    [row] = json_of(api.get(f"{HOOKS}/{webhook['webhookId']}/deliveries", params=failed))[
        "deliveries"
    ]
    assert (row["statusCode"], row["nextTryAt"]) == (410, None)
    again = json_of(api.post(f"{delivery}/replay"))
    assert (again["status"], again["deliveryId"]) == ("pending", row["deliveryId"])
    missing = api.post(f"{HOOKS}/{webhook['webhookId']}/deliveries/msg_missing/replay")
    assert refusal(missing, 404)["errorCode"] == "WEBHOOK_NOT_FOUND"


def test_a_page_of_deliveries_has_a_maximum_size(
    api: httpx.Client, webhook: dict[str, Any]
) -> None:
    url = f"{HOOKS}/{webhook['webhookId']}/deliveries"
    for query in ({"limit": 0}, {"limit": 201}, {"offset": -1}, {"status": "odd"}, {"x": "y"}):
        assert refusal(api.get(url, params=query), 400)["errorCode"] == "INVALID_PARAMETER"


def test_a_submit_that_names_an_unknown_webhook_is_refused(api: httpx.Client) -> None:
    for webhook_id in ("hook_missing", "", 5, "x" * 65):
        answer = api.post("/api/v1/runs", json=submission(webhookId=webhook_id))
        assert refusal(answer, 400)["errorCode"] == "INVALID_PARAMETER"


def test_a_deleted_webhook_is_not_found(api: httpx.Client, webhook: dict[str, Any]) -> None:
    url = f"{HOOKS}/{webhook['webhookId']}"
    assert json_of(api.delete(url)) == {"success": True, "webhookId": webhook["webhookId"]}
    assert refusal(api.get(url), 404)
