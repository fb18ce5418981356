"""JSON Schemas of the calls about paired browsers; times are in Unix milliseconds."""

from __future__ import annotations

from typing import Any

from decisions.foundation.validation.json_schema import (
    BOOL,
    ID,
    MS,
    MS_OR_NULL,
    PAGE_PROPERTIES,
    TEXT,
    Schema,
    closed,
)
from runners.paired_browser.protocol.messages import STATE

TICKET_INPUT: Schema = closed(
    {
        "name": {
            "type": "string",
            "maxLength": 128,
            "pattern": "^[^\\u0000-\\u001f\\u007f]*$",
            "description": "The name of the browser; by default the program and its system.",
        }
    },
    [],
)
LIST_INPUT: Schema = closed({**PAGE_PROPERTIES}, [])
ID_INPUT: Schema = closed({"clientId": ID})
TICKET: Schema = closed({"ticket": TEXT, "expiresAt": MS})
CLIENT: Schema = closed(
    {
        "clientId": ID,
        "name": TEXT,
        "connected": BOOL,
        "healthy": {
            **BOOL,
            "description": "False after two actions in a row timed out, until it answers again.",
        },
        "principal": TEXT,
        "extensionId": TEXT,
        "extensionName": TEXT,
        "extensionVersion": TEXT,
        "userAgent": TEXT,
        "language": TEXT,
        "pairedAt": MS,
        "connectedAt": MS_OR_NULL,
        "lastSeenAt": MS,
        "lastUsedAt": MS_OR_NULL,
    }
)
EXTENSION: Schema = closed(
    {
        "clientId": ID,
        "extensionId": TEXT,
        "extensionName": TEXT,
        "version": TEXT,
        "ua": TEXT,
        "connected": BOOL,
        "lastSeenAt": MS,
    }
)
EXTENSIONS: Schema = closed({"extensions": {"type": "array", "items": EXTENSION}})
SNAPSHOT: Schema = closed(
    {
        "clientId": ID,
        "connected": BOOL,
        "stale": {
            **BOOL,
            "description": "It is not connected, or sent its state more than 30 s ago.",
        },
        "seq": {"type": ["integer", "null"]},
        "updatedAt": MS_OR_NULL,
        "state": {"anyOf": [STATE, {"type": "null"}]},
    }
)
REVOKED: Schema = closed({"clientId": ID, "revoked": BOOL})

_CLIENT_ID = "plc_01m83ee7nbyrgyvfthqt36yeq4"
TICKET_EXAMPLE: dict[str, Any] = {
    "ticket": "plt_3q2-7wZ0f1xK9…",
    "expiresAt": 1_800_000_300_000,
}
EXAMPLE: dict[str, Any] = {
    "clientId": _CLIENT_ID,
    "name": "Chrome on Linux",
    "connected": True,
    "healthy": True,
    "principal": "local",
    "extensionId": "lllnilefilhffgilgeigmjgmhaeckfbl",
    "extensionName": "Continuity",
    "extensionVersion": "1.1.0",
    "userAgent": "Mozilla/5.0 (X11; Linux x86_64) … Chrome/140.0.0.0 Safari/537.36",
    "language": "en",
    "pairedAt": 1_800_000_000_000,
    "connectedAt": 1_800_000_000_000,
    "lastSeenAt": 1_800_000_020_000,
    "lastUsedAt": None,
}
SNAPSHOT_EXAMPLE: dict[str, Any] = {
    "clientId": _CLIENT_ID,
    "connected": True,
    "stale": False,
    "seq": 1_000_002,
    "updatedAt": 1_800_000_020_000,
    "state": {
        "windows": [{"windowId": 1, "type": "normal", "focused": True}],
        "groups": [],
        "tabs": [
            {
                "tabId": 7,
                "windowId": 1,
                "index": 0,
                "url": "https://example.com/",
                "title": "Example Domain",
                "active": True,
                "pinned": False,
            }
        ],
        "activeWindowId": 1,
        "activeTabId": 7,
    },
}
