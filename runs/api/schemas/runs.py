"""JSON Schemas of S0's operations, the same for MCP and REST: closed, camelCase, with S0's names.

`*_INPUT` is validated in requests, `*_OUTPUT` in responses.
"""

from __future__ import annotations

from artifacts.api.schemas import ARTIFACT_CHUNK as ARTIFACT_CHUNK
from artifacts.api.schemas import GET_ARTIFACT_INPUT as GET_ARTIFACT_INPUT
from decisions.foundation.validation.json_schema import (
    BOOL,
    COUNT,
    ID,
    MS,
    OFFSET,
    PAGE_PROPERTIES,
    TEXT,
    Schema,
    closed,
    page_schema,
)
from runs.events.types import EventType
from runs.models import RunStatus
from runs.queries.run_lists import NEWEST, SORTS
from runs.streaming.long_poll import WAIT_MAX_MS
from runs.submission.answer import MESSAGE_MAX


def _nullable(schema: Schema) -> Schema:
    return {**schema, "type": [schema["type"], "null"]}


_ANY_OBJECT: Schema = {"type": "object"}
_STATUS: Schema = {"type": "string", "enum": list(RunStatus.values)}
_TEMPLATE_ID: Schema = {"type": "string", "minLength": 1, "maxLength": 128}
_WAIT: Schema = {
    "type": "integer",
    "minimum": 0,
    "maximum": WAIT_MAX_MS,
    "description": "Milliseconds to wait at most.",
}

OPTIONS: Schema = closed(
    {
        "mode": {
            "type": "string",
            "enum": ["sync", "async", "auto"],
            "description": "sync: wait for the result, at most 5 minutes. async: return the runId."
            " auto (default): wait at most 55 s, for up to 10 pages; not for agent_task.",
        },
        "timeoutMs": {
            "type": "integer",
            "minimum": 1,
            "maximum": 600_000,
            "description": "The run's own time limit; at most 300000 with mode sync.",
        },
        "idempotencyKey": {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "pattern": "^[^\\u0000-\\u001f\\u007f]*$",
            "description": "The same key again returns the same run instead of a second one.",
        },
        "outputSchema": {
            "type": "object",
            "description": "JSON Schema of the answer; used by agent_task, ignored by others.",
        },
        "labels": {
            "type": "object",
            "additionalProperties": TEXT,
            "description": "Up to 20 names with short texts, to find the run by; no secrets.",
        },
        "templateVersion": {"type": "string", "minLength": 1, "maxLength": 32},
        "webhookId": {
            **ID,
            "description": "A webhook of the workspace to notify when the run ends (POST"
            " /webhooks).",
        },
    },
    [],
)
RUN_TASK_TEMPLATE_INPUT: Schema = closed(
    {
        "templateId": {**_TEMPLATE_ID, "description": "From list_task_templates."},
        "sessionId": {
            **ID,
            "description": "An open browser session; omit it for one of the run's own.",
        },
        "inputs": {**_ANY_OBJECT, "description": "Inputs that fit the template's inputSchema."},
        "options": OPTIONS,
    },
    ["templateId", "inputs"],
)
RUN_ID_INPUT: Schema = closed({"runId": ID})
WAIT_TASK_RUN_INPUT: Schema = closed(
    {"runId": ID, "waitMs": {**_WAIT, "default": WAIT_MAX_MS}}, ["runId"]
)
# Of MCP alone.
_BRIEF: Schema = {
    **BOOL,
    "description": "Only how it ended, without the result; read_page_content reads parts of it.",
}
BRIEF_RUN_TASK_TEMPLATE_INPUT: Schema = closed(
    {**RUN_TASK_TEMPLATE_INPUT["properties"], "brief": _BRIEF}, ["templateId", "inputs"]
)
BRIEF_WAIT_TASK_RUN_INPUT: Schema = closed(
    {**WAIT_TASK_RUN_INPUT["properties"], "brief": _BRIEF}, ["runId"]
)
_AT: Schema = {"type": "integer", "minimum": 0, "maximum": 253_402_300_799_000}  # the year 9999
_ELAPSED: Schema = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
LIST_TASK_RUNS_INPUT: Schema = closed(
    {
        "status": {**_STATUS, "description": "Only runs with this status."},
        "templateId": {**_TEMPLATE_ID, "description": "Only runs of this template."},
        "q": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "description": "Words, or starts of words, that a run has all of in its subject,"
            " labels, template, error code or the end of its id; or a whole id.",
        },
        "label": {
            "type": "string",
            "minLength": 3,
            "maxLength": 500,
            "description": "Only runs with this label: name=value; several with commas.",
        },
        "errorCode": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "description": "Only runs that ended with this errorCode or causeCode.",
        },
        "waiting": {
            "type": "boolean",
            "description": "Only runs that wait for a person, or only others.",
        },
        "userId": {
            "type": "string",
            "minLength": 1,
            "maxLength": 128,
            "description": "Only runs that were submitted for this user.",
        },
        "submittedBy": {
            "type": "string",
            "minLength": 1,
            "maxLength": 80,
            "description": "Only runs of this caller: a token's id (tok_…), or a principal's id.",
        },
        "minElapsedMs": {**_ELAPSED, "description": "Only ended runs that worked this long."},
        "maxElapsedMs": {**_ELAPSED, "description": "Only ended runs that worked no longer."},
        "hostActions": {
            "type": "boolean",
            "description": "true: the browser actions of agent hosts too, each of which is a run"
            " (template session_action).",
        },
        "since": {**_AT, "description": "Accepted at this Unix time in milliseconds or later."},
        "until": {**_AT, "description": "Accepted before this Unix time in milliseconds."},
        "sort": {
            "type": "string",
            "enum": list(SORTS),
            "default": NEWEST,
            "description": "-: descending.",
        },
        "cursor": {
            "type": "string",
            "minLength": 1,
            "maxLength": 300,
            "description": "nextCursor of the page before, with the same filters and sort.",
        },
        "limit": {**PAGE_PROPERTIES["limit"], "description": "Runs on a page."},
        "offset": {
            **PAGE_PROPERTIES["offset"],
            "description": "Runs to skip; use cursor to read all pages.",
        },
    },
    [],
)
# Of MCP alone: less and with fewer words, since a model reads them in every conversation.
_OF_REST = ("submittedBy", "minElapsedMs", "maxElapsedMs")
_SHORTER = {
    "q": "Words that subject, labels, template or error code have.",
    "label": "name=value, with commas between several",
    "hostActions": "browser actions too",
    "since": "Unix ms",
    "cursor": "nextCursor of the page before",
}
BRIEF_LIST_TASK_RUNS_INPUT: Schema = closed(
    {
        name: {key: value for key, value in schema.items() if key != "description"}
        | ({"description": _SHORTER[name]} if name in _SHORTER else {})
        for name, schema in LIST_TASK_RUNS_INPUT["properties"].items()
        if name not in _OF_REST
    },
    [],
)
ANSWER_TASK_RUN_INPUT: Schema = closed(
    {"runId": ID, "answer": {"type": "string", "minLength": 1, "maxLength": MESSAGE_MAX}}
)
SUBSCRIBE_INPUT: Schema = closed(
    {
        "runId": ID,
        "after": {**OFFSET, "description": "The last seq you have; 0 (default) from the start."},
        "waitMs": _WAIT,
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
    },
    ["runId"],
)
NO_INPUT: Schema = closed({})
_ONE_TEMPLATE: Schema = {**_TEMPLATE_ID, "description": "Only this one."}
GET_TASK_TEMPLATES_INPUT: Schema = closed({"templateId": _ONE_TEMPLATE}, [])
LIST_TASK_TEMPLATES_INPUT: Schema = closed({"templateId": _ONE_TEMPLATE, "brief": BOOL}, [])

_STEP_ERROR: Schema = {"type": "object", "required": ["errorCode", "message"]}
_RUN_FIELDS: Schema = {
    "runId": ID,
    "templateId": TEXT,
    "sessionId": TEXT,
    "ownsSession": BOOL,
    "status": _STATUS,
    "progress": closed({"doneSteps": COUNT, "totalSteps": COUNT}),
    "metrics": closed({"elapsedMs": MS}),
    "result": _nullable(_ANY_OBJECT),
    "error": _nullable(_STEP_ERROR),
    "artifactIds": {"type": "array", "items": ID},
    "createdAt": MS,
    "updatedAt": MS,
}
_RUN_EXTRAS: Schema = {
    "mode": {"type": "string", "enum": ["sync", "async"]},
    "templateVersion": TEXT,
    "subject": TEXT,
    "labels": {"type": "object", "additionalProperties": TEXT},
    "queue": closed({"position": COUNT, "reason": TEXT}),
    "waitingFor": _ANY_OBJECT,
    "resultSummary": TEXT,
    "nextActions": {"type": "array", "items": _ANY_OBJECT},
    "warnings": {"type": "array", "items": TEXT},
    "attempt": COUNT,
    "retryOf": TEXT,
    "againOf": TEXT,
}
RUN_OUTPUT: Schema = closed({**_RUN_FIELDS, **_RUN_EXTRAS}, list(_RUN_FIELDS))
# A sync answer has the fields of the run at top level, with mode and deduplicated.
RUN_TASK_TEMPLATE_OUTPUT: Schema = closed(
    {**_RUN_FIELDS, **_RUN_EXTRAS, "deduplicated": BOOL, "inputsMatch": BOOL},
    ["runId", "sessionId", "status", "mode", "deduplicated"],
)
# Of MCP alone: a brief answer has few fields, and names the items that failed.
_BRIEF_EXTRAS: Schema = {
    name: schema for name, schema in _RUN_EXTRAS.items() if name != "templateVersion"
} | {
    "failedItems": {
        "type": "array",
        "items": closed({"item": COUNT, "url": TEXT, "errorCode": TEXT, "message": TEXT}),
    }
}
BRIEF_RUN_OUTPUT: Schema = closed({**_RUN_FIELDS, **_BRIEF_EXTRAS}, ["runId", "status"])
BRIEF_RUN_TASK_TEMPLATE_OUTPUT: Schema = closed(
    {**_RUN_FIELDS, **_BRIEF_EXTRAS, "deduplicated": BOOL, "inputsMatch": BOOL},
    RUN_TASK_TEMPLATE_OUTPUT["required"],
)
LIST_TASK_RUNS_OUTPUT: Schema = page_schema("runs", RUN_OUTPUT)
CANCEL_TASK_RUN_OUTPUT: Schema = closed(
    {"success": BOOL, "runId": ID, "status": _STATUS, "reason": TEXT},
    ["success", "runId", "status"],
)
EVENT: Schema = closed(
    {
        "seq": {"type": "integer", "minimum": 1},
        "type": {"type": "string", "enum": list(EventType)},
        "at": MS,
        "data": _ANY_OBJECT,
    }
)
SUBSCRIBE_OUTPUT: Schema = closed(
    {"events": {"type": "array", "items": EVENT}, "lastSeq": COUNT, "terminal": BOOL}
)
_TEMPLATE_FIELDS: Schema = {
    "templateId": TEXT,
    "version": TEXT,
    "name": TEXT,
    "description": TEXT,
    "inputSchema": _ANY_OBJECT,
    "outputSchema": _ANY_OBJECT,
    "exampleInputs": {"type": "array", "items": _ANY_OBJECT},
    "trustLevelSupport": {"type": "array", "items": TEXT},
    "executionMode": TEXT,
    "limits": _ANY_OBJECT,
}
TEMPLATE: Schema = closed(_TEMPLATE_FIELDS)


def _list_of_templates(template: Schema) -> Schema:
    return closed(
        {
            "templates": {"type": "array", "items": template},
            "hasMore": BOOL,
            "nextCursor": {"type": ["string", "null"]},
        }
    )


LIST_TASK_TEMPLATES_OUTPUT: Schema = _list_of_templates(TEMPLATE)
# In full or briefly.
LIST_SOME_TASK_TEMPLATES_OUTPUT: Schema = _list_of_templates(
    closed(_TEMPLATE_FIELDS, ["templateId", "description"])
)
RUNTIME_PROFILE_OUTPUT: Schema = closed(
    {
        "maxConcurrentRuns": COUNT,
        "maxUrls": COUNT,
        "maxTabsPerSession": COUNT,
        "syncTimeoutMs": MS,
        "asyncTimeoutMs": MS,
        "artifactMaxChunkSize": COUNT,
        "artifactTtlMs": MS,
        "runTtlMs": MS,
        "supportedModes": {"type": "array", "items": TEXT},
        "trustLevel": {"type": "string", "enum": ["local", "remote"]},
        "isRemote": BOOL,
    }
)
