"""JSON Schemas of the task endpoints: closed, camelCase; times are Unix milliseconds."""

from __future__ import annotations

from typing import Any

from decisions.foundation.validation.json_schema import (
    COUNT,
    ID,
    MS,
    OFFSET,
    PAGE_PROPERTIES,
    Schema,
    closed,
)
from runs.events.types import TASK_EVENT_TYPES
from runs.models import MessageRole, TaskStatus
from runs.submission.answer import MESSAGE_MAX

_STATUS: Schema = {"type": "string", "enum": list(TaskStatus.values)}
_TARGET: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 64,
    "description": "The target that the agent works on; plugin, or the plc_… id of a browser that"
    " you paired, makes it act in your paired browser.",
}
_SELECTED: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 64,
    "description": "The browser of yours that the agent acts in, beside the target: a plc_… id, or"
    " plugin for the one that is connected.",
}
_CONTENT: Schema = {"type": "string", "minLength": 1, "maxLength": MESSAGE_MAX, "pattern": "\\S"}
_KEY: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": "^[^\\u0000-\\u001f\\u007f]*$",
    "description": "The same key again returns the first one; nothing is done twice.",
}
_OUTPUT_SCHEMA: Schema = {"type": "object", "description": "JSON Schema of the answer."}
_ON_BUSY: Schema = {
    "type": "string",
    "enum": ["queue", "refuse", "interrupt"],
    "default": "queue",
    "description": "If the task has a current run: wait for its end, be refused with TASK_BUSY, or"
    " cancel it.",
}

CREATE_INPUT: Schema = closed(
    {
        "title": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "pattern": "^[^\\u0000-\\u001f\\u007f]*$",
            "description": "By default the start of the message.",
        },
        "message": {**_CONTENT, "description": "The first message to the agent."},
        "targetId": _TARGET,
        "selectedClientId": _SELECTED,
        "outputSchema": _OUTPUT_SCHEMA,
        "idempotencyKey": _KEY,
    },
    [],
)
LIST_INPUT: Schema = closed({"status": _STATUS, **PAGE_PROPERTIES}, [])
TASK_ID_INPUT: Schema = closed({"taskId": ID})
GET_INPUT: Schema = closed(
    {
        "taskId": ID,
        "messages": {
            "type": "integer",
            "minimum": 0,
            "maximum": 1000,
            "default": 100,
            "description": "How many of the newest messages to return.",
        },
    },
    ["taskId"],
)
MESSAGE_INPUT: Schema = closed(
    {
        "taskId": ID,
        "content": _CONTENT,
        "onBusy": _ON_BUSY,
        "outputSchema": _OUTPUT_SCHEMA,
        "idempotencyKey": _KEY,
    },
    ["taskId", "content"],
)
EVENTS_INPUT: Schema = closed(
    {
        "taskId": ID,
        "after": {**OFFSET, "description": "The last seq you have; 0 (default) from the start."},
        "waitMs": {
            "type": "integer",
            "minimum": 0,
            "maximum": 55_000,
            "description": "Milliseconds to wait at most for the next event.",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    },
    ["taskId"],
)

MESSAGE: Schema = closed(
    {
        "id": ID,
        "role": {"type": "string", "enum": list(MessageRole.values)},
        "content": {"type": "string"},
        "timestamp": MS,
        "runId": ID,
    },
    ["id", "role", "content", "timestamp"],
)
_FIELDS: Schema = {
    "taskId": ID,
    "title": {"type": "string"},
    "status": _STATUS,
    "lastSeq": COUNT,
    "messagesTotal": COUNT,
    "createdAt": MS,
    "updatedAt": MS,
}
_EXTRAS: Schema = {
    "targetId": {"type": "string"},
    "selectedClientId": {
        "type": "string",
        "description": "The paired browser that it acts in; absent: the worker's own.",
    },
    "takenOverAt": {**MS, "description": "When a person took over the page."},
    "takenOverBy": {"type": "string", "description": "The principal that has the page."},
    "runId": {**ID, "description": "The current run."},
    "waitingFor": {"type": "object", "description": "What the current run waits for."},
    "queued": {**COUNT, "description": "How many messages wait behind the current run."},
    "error": {
        "type": "object",
        "description": "With status error: the last run's error, and its runId.",
    },
    "messages": {"type": "array", "items": MESSAGE},
}
TASK: Schema = closed({**_FIELDS, **_EXTRAS}, list(_FIELDS))
SENT_MESSAGE: Schema = closed(
    {
        "taskId": ID,
        "message": MESSAGE,
        "runId": ID,
        "queued": {"type": "boolean", "description": "The message waits for a run before it."},
        "deduplicated": {"type": "boolean"},
    }
)
EVENT: Schema = closed(
    {
        "seq": {"type": "integer", "minimum": 1},
        "type": {"type": "string", "enum": sorted(TASK_EVENT_TYPES)},
        "at": MS,
        "data": {"type": "object"},
    }
)
EVENT_PAGE: Schema = closed({"events": {"type": "array", "items": EVENT}, "lastSeq": COUNT})
TICKET: Schema = closed({"ticket": {"type": "string"}, "taskId": ID, "expiresAt": MS})

_TASK_ID = "task_01kb3x5h7c9v2m4q8t6w0y1z3a"
_RUN_ID = "run_01kb3x5h7c9v2m4q8t6w0y1z3b"
CREATE_EXAMPLE: dict[str, Any] = {"message": "Find the opening hours of the city library."}
MESSAGE_EXAMPLE: dict[str, Any] = {"content": "And on Sundays?", "idempotencyKey": "m-2"}
_MESSAGE_OBJECT_EXAMPLE: dict[str, Any] = {
    "id": "tmsg_01kb3x5h7cf3n8r5x2k9p4d7gb",
    "role": "user",
    "content": CREATE_EXAMPLE["message"],
    "timestamp": 1790000000000,
    "runId": _RUN_ID,
}
EXAMPLE: dict[str, Any] = {
    "taskId": _TASK_ID,
    "title": "Find the opening hours of the city library.",
    "status": "running",
    "lastSeq": 3,
    "messagesTotal": 1,
    "createdAt": 1790000000000,
    "updatedAt": 1790000000040,
    "queued": 0,
    "runId": _RUN_ID,
    "messages": [_MESSAGE_OBJECT_EXAMPLE],
}
SENT_MESSAGE_EXAMPLE: dict[str, Any] = {
    "taskId": _TASK_ID,
    "message": _MESSAGE_OBJECT_EXAMPLE,
    "runId": _RUN_ID,
    "queued": False,
    "deduplicated": False,
}
EVENTS_EXAMPLE: dict[str, Any] = {
    "events": [
        {
            "seq": 7,
            "type": "chatDelta",
            "at": 1790000000900,
            "data": {"runId": _RUN_ID, "step": 0, "content": "The library is "},
        }
    ],
    "lastSeq": 7,
}
TICKET_EXAMPLE: dict[str, Any] = {
    "ticket": "tkt_2Zt1…",
    "taskId": _TASK_ID,
    "expiresAt": 1790000060000,
}
