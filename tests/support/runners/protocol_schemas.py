"""The messages of `/ws/plugin` that the server sends: tests check them, and the docs show them."""

from __future__ import annotations

from collections.abc import Mapping

from decisions.foundation.validation.json_schema import Schema, closed
from runners.actions.catalogue import ACTIONS, JUDGE
from runners.paired_browser.protocol.messages import (
    BOOL,
    COUNTS,
    ERROR,
    FROM_BROWSER,
    GROUP,
    ID,
    NEXT,
    NUMBER,
    SECRET,
    STATE,
    TAB,
    TAB_EVENTS,
    WAIT_CHARS,
    WINDOW,
    list_of,
    message_of,
)

ORIGINS: Schema = {"type": "array", "items": {"type": "string"}}
STATUS: Schema = {
    "enum": ["created", "running", "ongoing", "takeover", "completed", "error", "removed"]
}
WAIT_TEXT: Schema = {"type": "string", "maxLength": WAIT_CHARS}
WAITS_FOR: Schema = closed(
    {
        "type": {"enum": ["confirmation", "answer"]},
        "act": {
            "description": "What is to be confirmed; call: a tool that is no browser action.",
            "enum": [
                *("submit", "click", "type", "key", "select", "drag", "upload", "dialog"),
                *("act", "call"),
            ],
        },
        "tool": WAIT_TEXT,
        "host": {**WAIT_TEXT, "description": "Of the page on which the action is."},
        "element": {**WAIT_TEXT, "description": "As the observation of the page has it."},
        "question": WAIT_TEXT,
    },
    ["type"],
)
ACTIVATED: Schema = closed(
    {
        "clientId": ID,
        "secret": SECRET,
        "name": {"type": "string"},
        "principal": {"type": "string"},
        "serverTime": NUMBER,
        "pingIntervalMs": NUMBER,
        "syncIntervalMs": NUMBER,
        "ownOrigins": ORIGINS,
        "artifactOrigins": ORIGINS,
        "tasks": list_of(
            closed(
                {
                    "taskId": ID,
                    "status": STATUS,
                    "title": {"type": "string"},
                    "tabIds": list_of(NUMBER, 1000),
                    "waitsFor": WAITS_FOR,
                },
                ["taskId", "status", "title", "tabIds"],
            ),
            1000,
        ),
    }
)
UPLOAD: Schema = closed(
    {
        "url": {"type": "string"},
        "method": {"const": "PUT"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "maxBytes": NUMBER,
        "expiresAt": NUMBER,
    },
    ["url", "method", "maxBytes", "expiresAt"],
)
FILE: Schema = closed(
    {
        "fileName": {"type": "string"},
        "mediaType": {"type": "string"},
        "sizeBytes": NUMBER,
        "url": {"type": "string"},
    }
)
JUDGED = closed(
    {"node": {"type": "string"}, "toNode": {"type": "string"}, "compares": BOOL},
    required=["node", "compares"],
)
TO_BROWSER: Mapping[str, Schema] = {
    "ack": message_of("ack", ["ok"], ok=BOOL, result={"type": "object"}, error=ERROR, resync=BOOL),
    "browser_action": message_of(
        "browser_action",
        ["id", "actionId", "taskId", "clientId", "attempt", "timeoutMs", "action"],
        actionId=ID,
        taskId=ID,
        clientId=ID,
        attempt=NEXT,
        timeoutMs=NEXT,
        action={
            "type": "object",
            "description": "{name: parameters} of one action (docs/browser-actions.md).",
            "properties": {name: {"type": "object"} for name in (*ACTIONS, JUDGE.name)},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        },
        upload=UPLOAD,
        files=list_of(FILE, 10),
        taskTitle={"type": "string"},
        expectedOrigin={
            "type": "string",
            "description": "The action gives input only to a page of this origin.",
        },
        judged=JUDGED,
    ),
    "task_status": message_of(
        "task_status",
        ["id", "taskId", "status"],
        taskId=ID,
        status=STATUS,
        title={"type": "string"},
        waitsFor=WAITS_FOR,
    ),
    "ping": message_of("ping", []),
    "pong": message_of("pong", []),
}


# Named parts of the schemas, as the docs show them.
PARTS: Mapping[str, Schema] = {
    "state": STATE,
    "window": WINDOW,
    "group": GROUP,
    "tab": TAB,
    "counts": COUNTS,
    "error": ERROR,
    "upload": UPLOAD,
    "file": FILE,
    "judged": JUDGED,
    "waitsFor": WAITS_FOR,
    "id": ID,
    "number": NUMBER,
}


def complete_schema(type_: str) -> Schema:
    """Return the whole schema of a browser's message; that of a tab event has all its kinds."""
    schema = FROM_BROWSER[type_]
    if type_ != "tab_event":
        return schema
    event = {"oneOf": list(TAB_EVENTS.values())}
    return {**schema, "properties": {**schema["properties"], "event": event}}
