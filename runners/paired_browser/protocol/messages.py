"""The messages of `/ws/plugin`: JSON texts `{v: 1, type, id, …}`, closed, camelCase.

These schemas validate what a browser sends; docs/extension-protocol.md shows all.
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

VERSION = 1
FRAME_BYTES = 1024 * 1024
FIRST_FRAME_BYTES = 8 * 1024  # of activate_extension: the browser is not known yet
ID_LENGTH = 128
TITLE_LENGTH, URL_LENGTH = 512, 2048  # the extension shortens longer ones
MAX_WINDOWS, MAX_GROUPS, MAX_TABS = 200, 500, 2000
MAX_NAVIGATIONS = 20
MAX_ORIGINS = 21
WAIT_CHARS = 300

_PRINTABLE = "^[^\\u0000-\\u001f\\u007f]*$"
BOOL: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
NEXT: Schema = {**NUMBER, "minimum": 1}
ID: Schema = {"type": "string", "minLength": 1, "maxLength": ID_LENGTH, "pattern": _PRINTABLE}
_WORD: Schema = {"type": "string", "maxLength": 32}
_TEXT: Schema = {"type": "string", "maxLength": 2000}
_TITLE: Schema = {"type": "string", "maxLength": TITLE_LENGTH}
_URL: Schema = {
    "type": "string",
    "maxLength": URL_LENGTH,
    "description": "Without user name, password and fragment.",
}
COUNTS: Schema = closed(
    dict.fromkeys(("clicks", "keys", "texts", "wheels", "navigations"), NUMBER), []
)
_CODE: Schema = {"type": "string", "pattern": "^[A-Z0-9_]{1,64}$"}
ERROR: Schema = closed(
    {"code": _CODE, "message": _TEXT, "retryable": BOOL, "details": {"type": "object"}},
    ["code", "message"],
)


def list_of(items: Schema, most: int) -> Schema:
    return {"type": "array", "items": items, "maxItems": most}


# --- what a browser has open ----------------------------------------------------------------------

WINDOW: Schema = closed(
    {"windowId": NUMBER, "type": _WORD, "focused": BOOL, "state": _WORD},
    ["windowId", "type", "focused"],
)
GROUP: Schema = closed(
    {
        "groupId": NUMBER,
        "windowId": NUMBER,
        "title": _TITLE,
        "color": _WORD,
        "collapsed": BOOL,
    },
    ["groupId", "windowId"],
)
TAB: Schema = closed(
    {
        "tabId": NUMBER,
        "windowId": NUMBER,
        "index": NUMBER,
        "groupId": NUMBER,
        "url": _URL,
        "title": _TITLE,
        "active": BOOL,
        "pinned": BOOL,
        "status": _WORD,
    },
    ["tabId", "windowId", "index", "active", "pinned"],
)
STATE: Schema = closed(
    {
        "windows": list_of(WINDOW, MAX_WINDOWS),
        "groups": list_of(GROUP, MAX_GROUPS),
        "tabs": list_of(TAB, MAX_TABS),
        "activeWindowId": NUMBER,
        "activeTabId": NUMBER,
    },
    ["windows", "groups", "tabs"],
)


def _event(kind: str, *required: str, **fields: Schema) -> Schema:
    return closed({"kind": {"const": kind}, **fields}, ["kind", *required])


_PLACE = {"tabId": NUMBER, "windowId": NUMBER, "index": NUMBER}
TAB_EVENTS: Mapping[str, Schema] = {
    "created": _event("created", "tab", tab=TAB),
    "updated": _event("updated", "tab", tab=TAB),
    "removed": _event("removed", "tabId", tabId=NUMBER, windowId=NUMBER),
    "activated": _event("activated", "tabId", "windowId", tabId=NUMBER, windowId=NUMBER),
    "moved": _event("moved", *_PLACE, **_PLACE),
    "attached": _event("attached", *_PLACE, **_PLACE),
    "detached": _event("detached", "tabId", **_PLACE),
    "replaced": _event("replaced", "tabId", "replacedTabId", tabId=NUMBER, replacedTabId=NUMBER),
    "groupCreated": _event("groupCreated", "group", group=GROUP),
    "groupUpdated": _event("groupUpdated", "group", group=GROUP),
    "groupRemoved": _event("groupRemoved", "groupId", groupId=NUMBER),
}

# --- from the browser -----------------------------------------------------------------------------


def message_of(type_: str, required: list[str], **fields: Schema) -> Schema:
    head = {"v": {"const": VERSION}, "type": {"const": type_}, "id": ID}
    return closed({**head, **fields}, ["v", "type", *required])


SECRET: Schema = {"type": "string", "minLength": 1, "maxLength": 256}
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
FROM_BROWSER: Mapping[str, Schema] = {
    "activate_extension": message_of(
        "activate_extension",
        ["id", "extension", "browser"],
        ticket=SECRET,
        clientId=ID,
        secret=SECRET,
        extension=ABOUT_EXTENSION,
        browser=ABOUT_BROWSER,
    ),
    "full_state_sync": message_of("full_state_sync", ["id", "seq", "state"], seq=NEXT, state=STATE),
    "tab_event": message_of(
        "tab_event",
        ["id", "seq", "event"],
        seq=NEXT,
        event={
            "type": "object",
            "required": ["kind"],
            "properties": {"kind": {"enum": list(TAB_EVENTS)}},
        },
    ),
    "ack": message_of("ack", ["id", "ok"], ok=BOOL, error=ERROR),
    "browser_action_result": message_of(
        "browser_action_result",
        ["id", "actionId", "taskId", "status"],
        actionId=ID,
        taskId=ID,
        tabId=NUMBER,
        status={"enum": ["success", "error", "partial"]},
        result={"type": "object"},
        warnings=list_of(_TEXT, 50),
        missing=list_of(_WORD, 10),
        pageOrigins=list_of({"type": "string", "maxLength": 300}, MAX_ORIGINS),
        error=ERROR,
    ),
    "takeover": message_of(
        "takeover",
        ["id", "taskId", "reason"],
        taskId=ID,
        reason={"enum": ["input", "button", "debugger_canceled", "overlay_removed"]},
        counts=COUNTS,
    ),
    "resume": message_of("resume", ["id", "taskId"], taskId=ID, counts=COUNTS),
    "stop": message_of("stop", ["id", "taskId"], taskId=ID),
    "activity": message_of(
        "activity",
        ["id", "taskId", "counts"],
        taskId=ID,
        counts=COUNTS,
        navigations=list_of(_TEXT, MAX_NAVIGATIONS),
    ),
    "ping": message_of("ping", []),
    "pong": message_of("pong", []),
}
_VALIDATORS = {type_: compile_schema(schema) for type_, schema in FROM_BROWSER.items()}
_EVENT_VALIDATORS = {kind: compile_schema(schema) for kind, schema in TAB_EVENTS.items()}


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
    read: dict[str, Any] = coerce_integers(message, FROM_BROWSER[type_])
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
