"""JSON Schemas of the webhook endpoints: closed, camelCase."""

from __future__ import annotations

from decisions.foundation.validation.json_schema import BOOL, ID, MS, TEXT, Schema, closed
from runs.models import DeliveryStatus

_MS_OR_NULL: Schema = {"type": ["integer", "null"], "minimum": 0}

CREATE_WEBHOOK_INPUT = closed(
    {
        "url": {
            "type": "string",
            "minLength": 1,
            "maxLength": 2048,
            "description": "The URL to POST to; http or https, with a public address.",
        },
        "name": {"type": "string", "maxLength": 128, "pattern": "^[^\\u0000-\\u001f\\u007f]*$"},
        "everyRun": {
            **BOOL,
            "description": "Send every run of the workspace that ends (default), or only runs that"
            " name this webhook in options.webhookId.",
        },
        "confirmations": {
            **BOOL,
            "description": "Also send confirmations that wait for a person, with a link to decide"
            " them (default false). Needs the scope confirm.",
        },
        "questions": {
            **BOOL,
            "description": "Also send the questions of runs that wait for an answer, as"
            " run.waiting (default false).",
        },
        "confirmationArguments": {
            **BOOL,
            "description": "Send the exact arguments with these, secrets in them too, and the same"
            " with every character visible; else their digest and size (default false).",
        },
    },
    ["url"],
)
WEBHOOK_ID_INPUT = closed({"webhookId": ID}, ["webhookId"])
LIST_DELIVERIES_INPUT = closed(
    {
        "webhookId": ID,
        "status": {"type": "string", "enum": list(DeliveryStatus.values)},
        "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
        "offset": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1, "default": 0},
    },
    ["webhookId"],
)
DELIVERY_INPUT = closed({"webhookId": ID, "deliveryId": ID}, ["webhookId", "deliveryId"])

_WEBHOOK: Schema = {
    "webhookId": ID,
    "name": TEXT,
    "url": TEXT,
    "everyRun": BOOL,
    "confirmations": BOOL,
    "questions": BOOL,
    "confirmationArguments": BOOL,
    "enabled": BOOL,
    "createdAt": MS,
    "disabledAt": MS,
    "reason": TEXT,
}
_ALWAYS = [
    "webhookId",
    "name",
    "url",
    "everyRun",
    "confirmations",
    "questions",
    "confirmationArguments",
    "enabled",
    "createdAt",
]
WEBHOOK = closed(_WEBHOOK, _ALWAYS)
NEW_WEBHOOK = closed({**_WEBHOOK, "secret": TEXT}, [*_ALWAYS, "secret"])
WEBHOOK_LIST = closed({"webhooks": {"type": "array", "items": WEBHOOK}}, ["webhooks"])
DELETED_WEBHOOK = closed({"success": BOOL, "webhookId": ID}, ["success", "webhookId"])
_DELIVERY: Schema = {
    "deliveryId": ID,
    "webhookId": ID,
    "runId": {**ID, "type": ["string", "null"]},
    "decisionId": {"type": ["integer", "null"]},
    "type": TEXT,
    "status": {"type": "string", "enum": list(DeliveryStatus.values)},
    "attempts": {"type": "integer", "minimum": 0},
    "statusCode": {"type": ["integer", "null"]},
    "error": {"type": ["string", "null"]},
    "createdAt": MS,
    "triedAt": _MS_OR_NULL,
    "nextTryAt": _MS_OR_NULL,
}
DELIVERY = closed(_DELIVERY, list(_DELIVERY))
DELIVERY_LIST = closed(
    {
        "deliveries": {"type": "array", "items": DELIVERY},
        "hasMore": BOOL,
        "nextCursor": {"type": ["string", "null"]},
    },
    ["deliveries", "hasMore", "nextCursor"],
)
