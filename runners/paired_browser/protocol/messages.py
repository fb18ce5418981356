"""The messages of `/ws/plugin`: JSON texts `{v: 1, type, id, …}`, closed, camelCase.

These schemas validate what a browser sends, and docs/extension-protocol.md shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from decisions.foundation.errors import InvalidInput
from decisions.foundation.validation.json_input import load_json
from decisions.foundation.validation.json_schema import (
    Schema,
    check,
    closed,
    coerce_integers,
    compile_schema,
)
from runners.actions.catalogue import ACTIONS, JUDGE

VERSION = 1
FRAME_BYTES = 1024 * 1024
FIRST_FRAME_BYTES = 8 * 1024  # of activate_extension: the browser is not known yet
ID_LENGTH = 128
TITLE_LENGTH, URL_LENGTH = 512, 2048  # the extension shortens longer ones
MAX_WINDOWS, MAX_GROUPS, MAX_TABS = 200, 500, 2000
MAX_NAVIGATIONS = 20
MAX_ORIGINS = 21
WAIT_CHARS = 300
UPLOAD_MAX_BYTES = 25 * 1024 * 1024

_PRINTABLE = "^[^\\u0000-\\u001f\\u007f]*$"
_BOOL: Schema = {"type": "boolean"}
_NUMBER: Schema = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
_NEXT: Schema = {**_NUMBER, "minimum": 1}
_ID: Schema = {"type": "string", "minLength": 1, "maxLength": ID_LENGTH, "pattern": _PRINTABLE}
_WORD: Schema = {"type": "string", "maxLength": 32}
_TEXT: Schema = {"type": "string", "maxLength": 2000}
_TITLE: Schema = {"type": "string", "maxLength": TITLE_LENGTH}
_URL: Schema = {
    "type": "string",
    "maxLength": URL_LENGTH,
    "description": "Without user name, password and fragment.",
}
_ORIGINS: Schema = {"type": "array", "items": {"type": "string"}}
_COUNTS: Schema = closed(
    dict.fromkeys(("clicks", "keys", "texts", "wheels", "navigations"), _NUMBER), []
)
_CODE: Schema = {"type": "string", "pattern": "^[A-Z0-9_]{1,64}$"}
_ERROR: Schema = closed(
    {"code": _CODE, "message": _TEXT, "retryable": _BOOL, "details": {"type": "object"}},
    ["code", "message"],
)


def _list(items: Schema, most: int) -> Schema:
    return {"type": "array", "items": items, "maxItems": most}


# --- what a browser has open ----------------------------------------------------------------------

WINDOW: Schema = closed(
    {"windowId": _NUMBER, "type": _WORD, "focused": _BOOL, "state": _WORD},
    ["windowId", "type", "focused"],
)
GROUP: Schema = closed(
    {
        "groupId": _NUMBER,
        "windowId": _NUMBER,
        "title": _TITLE,
        "color": _WORD,
        "collapsed": _BOOL,
    },
    ["groupId", "windowId"],
)
TAB: Schema = closed(
    {
        "tabId": _NUMBER,
        "windowId": _NUMBER,
        "index": _NUMBER,
        "groupId": _NUMBER,
        "url": _URL,
        "title": _TITLE,
        "active": _BOOL,
        "pinned": _BOOL,
        "status": _WORD,
    },
    ["tabId", "windowId", "index", "active", "pinned"],
)
STATE: Schema = closed(
    {
        "windows": _list(WINDOW, MAX_WINDOWS),
        "groups": _list(GROUP, MAX_GROUPS),
        "tabs": _list(TAB, MAX_TABS),
        "activeWindowId": _NUMBER,
        "activeTabId": _NUMBER,
    },
    ["windows", "groups", "tabs"],
)


def _event(kind: str, *required: str, **fields: Schema) -> Schema:
    return closed({"kind": {"const": kind}, **fields}, ["kind", *required])


_PLACE = {"tabId": _NUMBER, "windowId": _NUMBER, "index": _NUMBER}
TAB_EVENTS: Mapping[str, Schema] = {
    "created": _event("created", "tab", tab=TAB),
    "updated": _event("updated", "tab", tab=TAB),
    "removed": _event("removed", "tabId", tabId=_NUMBER, windowId=_NUMBER),
    "activated": _event("activated", "tabId", "windowId", tabId=_NUMBER, windowId=_NUMBER),
    "moved": _event("moved", *_PLACE, **_PLACE),
    "attached": _event("attached", *_PLACE, **_PLACE),
    "detached": _event("detached", "tabId", **_PLACE),
    "replaced": _event("replaced", "tabId", "replacedTabId", tabId=_NUMBER, replacedTabId=_NUMBER),
    "groupCreated": _event("groupCreated", "group", group=GROUP),
    "groupUpdated": _event("groupUpdated", "group", group=GROUP),
    "groupRemoved": _event("groupRemoved", "groupId", groupId=_NUMBER),
}

# --- from the browser -----------------------------------------------------------------------------


def _message(type_: str, required: list[str], **fields: Schema) -> Schema:
    head = {"v": {"const": VERSION}, "type": {"const": type_}, "id": _ID}
    return closed({**head, **fields}, ["v", "type", *required])


_SECRET: Schema = {"type": "string", "minLength": 1, "maxLength": 256}
ABOUT_EXTENSION: Schema = closed(
    {
        "id": {"type": "string", "minLength": 1, "maxLength": 64, "pattern": _PRINTABLE},
        "name": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": _PRINTABLE},
        "version": {"type": "string", "minLength": 1, "maxLength": 32, "pattern": _PRINTABLE},
    }
)
ABOUT_BROWSER: Schema = closed(
    {
        "userAgent": {"type": "string", "maxLength": 512, "pattern": _PRINTABLE},
        "language": {"type": "string", "maxLength": 35, "pattern": _PRINTABLE},
    },
    ["userAgent"],
)
FROM_CLIENT: Mapping[str, Schema] = {
    "activate_extension": _message(
        "activate_extension",
        ["id", "extension", "browser"],
        ticket=_SECRET,
        clientId=_ID,
        secret=_SECRET,
        extension=ABOUT_EXTENSION,
        browser=ABOUT_BROWSER,
    ),
    "full_state_sync": _message("full_state_sync", ["id", "seq", "state"], seq=_NEXT, state=STATE),
    "tab_event": _message(
        "tab_event",
        ["id", "seq", "event"],
        seq=_NEXT,
        event={
            "type": "object",
            "required": ["kind"],
            "properties": {"kind": {"enum": list(TAB_EVENTS)}},
        },
    ),
    "ack": _message("ack", ["id", "ok"], ok=_BOOL, error=_ERROR),
    "browser_action_result": _message(
        "browser_action_result",
        ["id", "actionId", "taskId", "status"],
        actionId=_ID,
        taskId=_ID,
        tabId=_NUMBER,
        status={"enum": ["success", "error", "partial"]},
        result={"type": "object"},
        warnings=_list(_TEXT, 50),
        missing=_list(_WORD, 10),
        pageOrigins=_list({"type": "string", "maxLength": 300}, MAX_ORIGINS),
        error=_ERROR,
    ),
    "takeover": _message(
        "takeover",
        ["id", "taskId", "reason"],
        taskId=_ID,
        reason={"enum": ["input", "button", "debugger_canceled", "overlay_removed"]},
        counts=_COUNTS,
    ),
    "resume": _message("resume", ["id", "taskId"], taskId=_ID, counts=_COUNTS),
    "stop": _message("stop", ["id", "taskId"], taskId=_ID),
    "activity": _message(
        "activity",
        ["id", "taskId", "counts"],
        taskId=_ID,
        counts=_COUNTS,
        navigations=_list(_TEXT, MAX_NAVIGATIONS),
    ),
    "ping": _message("ping", []),
    "pong": _message("pong", []),
}
_VALIDATORS = {type_: compile_schema(schema) for type_, schema in FROM_CLIENT.items()}
_EVENT_VALIDATORS = {kind: compile_schema(schema) for kind, schema in TAB_EVENTS.items()}

# --- to the browser -------------------------------------------------------------------------------

_STATUS: Schema = {
    "enum": ["created", "running", "ongoing", "takeover", "completed", "error", "removed"]
}
_WAIT_TEXT: Schema = {"type": "string", "maxLength": WAIT_CHARS}
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
        "tool": _WAIT_TEXT,
        "host": {**_WAIT_TEXT, "description": "Of the page on which the action is."},
        "element": {**_WAIT_TEXT, "description": "As the observation of the page has it."},
        "question": _WAIT_TEXT,
    },
    ["type"],
)
ACTIVATED: Schema = closed(
    {
        "clientId": _ID,
        "secret": _SECRET,
        "name": {"type": "string"},
        "principal": {"type": "string"},
        "serverTime": _NUMBER,
        "pingIntervalMs": _NUMBER,
        "syncIntervalMs": _NUMBER,
        "ownOrigins": _ORIGINS,
        "artifactOrigins": _ORIGINS,
        "tasks": _list(
            closed(
                {
                    "taskId": _ID,
                    "status": _STATUS,
                    "title": {"type": "string"},
                    "tabIds": _list(_NUMBER, 1000),
                    "waitsFor": WAITS_FOR,
                },
                ["taskId", "status", "title", "tabIds"],
            ),
            1000,
        ),
    }
)
_UPLOAD: Schema = closed(
    {
        "url": {"type": "string"},
        "method": {"const": "PUT"},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}},
        "maxBytes": _NUMBER,
        "expiresAt": _NUMBER,
    },
    ["url", "method", "maxBytes", "expiresAt"],
)
_FILE: Schema = closed(
    {
        "fileName": {"type": "string"},
        "mediaType": {"type": "string"},
        "sizeBytes": _NUMBER,
        "url": {"type": "string"},
    }
)
_JUDGED = closed(
    {"node": {"type": "string"}, "toNode": {"type": "string"}, "compares": _BOOL},
    required=["node", "compares"],
)
TO_CLIENT: Mapping[str, Schema] = {
    "ack": _message("ack", ["ok"], ok=_BOOL, result={"type": "object"}, error=_ERROR, resync=_BOOL),
    "browser_action": _message(
        "browser_action",
        ["id", "actionId", "taskId", "clientId", "attempt", "timeoutMs", "action"],
        actionId=_ID,
        taskId=_ID,
        clientId=_ID,
        attempt=_NEXT,
        timeoutMs=_NEXT,
        action={
            "type": "object",
            "description": "{name: parameters} of one action (docs/browser-actions.md).",
            "properties": {name: {"type": "object"} for name in (*ACTIONS, JUDGE.name)},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        },
        upload=_UPLOAD,
        files=_list(_FILE, 10),
        taskTitle={"type": "string"},
        expectedOrigin={
            "type": "string",
            "description": "The action gives input only to a page of this origin.",
        },
        judged=_JUDGED,
    ),
    "task_status": _message(
        "task_status",
        ["id", "taskId", "status"],
        taskId=_ID,
        status=_STATUS,
        title={"type": "string"},
        waitsFor=WAITS_FOR,
    ),
    "ping": _message("ping", []),
    "pong": _message("pong", []),
}


# Named parts of the schemas, as the docs show them.
PARTS: Mapping[str, Schema] = {
    "state": STATE,
    "window": WINDOW,
    "group": GROUP,
    "tab": TAB,
    "counts": _COUNTS,
    "error": _ERROR,
    "upload": _UPLOAD,
    "file": _FILE,
    "judged": _JUDGED,
    "waitsFor": WAITS_FOR,
    "id": _ID,
    "number": _NUMBER,
}


def complete_schema(type_: str) -> Schema:
    """Return the whole schema of a browser's message; that of a tab event has all its kinds."""
    schema = FROM_CLIENT[type_]
    if type_ != "tab_event":
        return schema
    event = {"oneOf": list(TAB_EVENTS.values())}
    return {**schema, "properties": {**schema["properties"], "event": event}}


def read_message(text: str) -> dict[str, Any]:
    """Parse a browser's message and check it against the schema of its type.

    Raises:
        InvalidInput: The message is not valid.
    """
    message = load_json(text.encode("utf-8", "surrogatepass"), limit=FRAME_BYTES)
    type_ = message.get("type") if isinstance(message, dict) else None
    if not isinstance(type_, str) or type_ not in _VALIDATORS:
        raise InvalidInput(f"type: must be one of {', '.join(sorted(_VALIDATORS))}.")
    check(_VALIDATORS[type_], message)
    if type_ == "tab_event":
        event = message["event"]
        check(_EVENT_VALIDATORS[event["kind"]], event, where="event")
        whole = coerce_integers(event, TAB_EVENTS[event["kind"]])
        message = {**message, "event": whole}
    elif type_ == "browser_action_result":
        _check_outcome(message)
    read: dict[str, Any] = coerce_integers(message, FROM_CLIENT[type_])
    return read


def read_activation(text: str) -> dict[str, Any]:
    """Parse the first message of a connection. Nothing of another type is validated.

    Raises:
        InvalidInput: It is not an `activate_extension`, or not a valid one.
    """
    first = load_json(text.encode("utf-8", "surrogatepass"), limit=FIRST_FRAME_BYTES)
    if not isinstance(first, dict) or first.get("type") != "activate_extension":
        raise InvalidInput("The first message must be activate_extension.")
    return read_message(text)


def _check_outcome(message: Mapping[str, Any]) -> None:
    has_failed = message["status"] == "error"
    if has_failed != ("error" in message):
        raise InvalidInput("error: must be present if, and only if, status is error.")


def id_of(text: str) -> str | None:
    """Return the id of a message that may be invalid; None where it has no usable id."""
    try:
        message = orjson.loads(text)
    except ValueError:
        return None
    named = message.get("id") if isinstance(message, dict) else None
    is_usable = isinstance(named, str) and 0 < len(named) <= ID_LENGTH and named.isprintable()
    return named if is_usable else None


def ack(message_id: str | None, **fields: Any) -> dict[str, Any]:
    """Return the answer to a message that was accepted; `fields` are result and resync."""
    return _with_id({"v": VERSION, "type": "ack", "ok": True, **fields}, message_id)


def refusal(message_id: str | None, code: str, text: str) -> dict[str, Any]:
    """Return the answer to a message that was not accepted; the connection stays open."""
    error = {"code": code, "message": text[:2000]}
    return _with_id({"v": VERSION, "type": "ack", "ok": False, "error": error}, message_id)


def ping(message_id: str) -> dict[str, Any]:
    """Return a ping."""
    return {"v": VERSION, "type": "ping", "id": message_id}


def pong(message_id: str | None) -> dict[str, Any]:
    """Return the answer to a ping."""
    return _with_id({"v": VERSION, "type": "pong"}, message_id)


def _with_id(message: dict[str, Any], message_id: str | None) -> dict[str, Any]:
    return message if message_id is None else {**message, "id": message_id}
