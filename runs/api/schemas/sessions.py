"""JSON Schemas of the calls about browser sessions. Times are Unix milliseconds."""

from __future__ import annotations

from typing import Any

from decisions.foundation.validation.json_schema import (
    ID,
    MS,
    MS_OR_NULL,
    PAGE_PROPERTIES,
    Schema,
    closed,
)
from runners.browser_sessions import NAME_MAX

_NAME: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": NAME_MAX,
    "pattern": "^[^\\u0000-\\u001f\\u007f]*$",
    "description": "A label for people; it need not be unique.",
}

LIST_INPUT: Schema = closed(PAGE_PROPERTIES, [])
CREATE_INPUT: Schema = closed({"name": _NAME}, [])
ID_INPUT: Schema = closed({"sessionId": ID}, ["sessionId"])
RENAME_INPUT: Schema = closed({"sessionId": ID, "name": _NAME}, ["sessionId", "name"])
CLONE_INPUT: Schema = closed({"sessionId": ID, "name": _NAME}, ["sessionId"])

_FIELDS: Schema = {
    "sessionId": ID,
    "name": {"type": "string"},
    "live": {
        "type": "boolean",
        "description": "Open in a worker; if false, the next run restores its saved state.",
    },
    "usedByRunId": {
        "type": ["string", "null"],
        "description": "The run that uses it now; other runs that name it wait.",
    },
    "cookies": {"type": "integer", "minimum": 0, "description": "Number of saved cookies."},
    "loggedInUntil": {
        **MS_OR_NULL,
        "description": "When the first of its login cookies expires; null if none has an expiry.",
    },
    "createdAt": MS,
    "usedAt": MS,
    "savedAt": MS_OR_NULL,
    "expiresAt": {**MS, "description": "When it is closed unless a run uses it before."},
    "trustLevel": {"type": "string", "enum": ["local", "remote"]},
}
SESSION: Schema = closed(_FIELDS, list(_FIELDS))
CLOSED: Schema = closed({"success": {"type": "boolean"}, "sessionId": ID}, ["success", "sessionId"])
EXAMPLE: dict[str, Any] = {
    "sessionId": "sess_01kb3x5h7cf3n8r5x2k9p4d7gb",
    "name": "example.com",
    "live": True,
    "usedByRunId": None,
    "cookies": 3,
    "loggedInUntil": 1791209600000,
    "createdAt": 1790000000000,
    "usedAt": 1790000004200,
    "savedAt": 1790000004200,
    "expiresAt": 1790604804200,
    "trustLevel": "local",
}
