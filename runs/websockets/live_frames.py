"""The frames of a live page's WebSocket: JSON texts `{v: 1, type, …}`. A client sends `input` and
receives `live_state`, `live_frame`, `live_dialog`, `live_tab` and `live_problem`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions.foundation.errors import InvalidInput
from decisions.foundation.validation.json_input import load_json
from decisions.foundation.validation.json_schema import (
    Schema,
    check,
    closed,
    coerce_integers,
    compile_schema,
)
from runs.websockets.conversation_frames import VERSION

FRAME_BYTES = 64 * 1024
EVENTS_MAX, TEXT_MAX = 64, 10_000
_COORDINATE = {"type": "number", "minimum": -10_000, "maximum": 10_000}
_DELTA = {"type": "number", "minimum": -10_000, "maximum": 10_000}
_MODIFIERS = {"type": "integer", "minimum": 0, "maximum": 15}
_TEXT = {"type": "string", "minLength": 1, "maxLength": TEXT_MAX, "pattern": "^[^\\u0000]*$"}
_NAME = {"type": "string", "minLength": 1, "maxLength": 40}
_BUTTONS = ["none", "left", "middle", "right", "back", "forward"]


def _event(kind: str, properties: Mapping[str, Any], *required: str) -> Schema:
    return closed({"kind": {"const": kind}, **properties}, ["kind", *required])


_POINT = {"x": _COORDINATE, "y": _COORDINATE, "modifiers": _MODIFIERS}
_EVENTS = {
    "mouse": _event(
        "mouse",
        {
            **_POINT,
            "action": {"enum": ["move", "down", "up"]},
            "button": {"enum": _BUTTONS},
            "buttons": {"type": "integer", "minimum": 0, "maximum": 31},
            "clicks": {"type": "integer", "minimum": 0, "maximum": 3},
        },
        "action",
        "x",
        "y",
    ),
    "wheel": _event(
        "wheel", {**_POINT, "deltaX": _DELTA, "deltaY": _DELTA}, "x", "y", "deltaX", "deltaY"
    ),
    "key": _event(
        "key",
        {
            "action": {"enum": ["down", "up"]},
            "key": _NAME,
            "code": {**_NAME, "minLength": 0},
            "keyCode": {"type": "integer", "minimum": 0, "maximum": 255},
            "modifiers": _MODIFIERS,
            "repeat": {"type": "boolean"},
        },
        "action",
        "key",
    ),
    "text": _event("text", {"text": _TEXT}, "text"),
    "go": _event("go", {"to": {**_TEXT, "maxLength": 8192}}, "to"),
    "dialog": _event(
        "dialog",
        {
            "dialog": {"type": "integer", "minimum": 1},
            "accept": {"type": "boolean"},
            "text": {**_TEXT, "minLength": 0},
        },
        "dialog",
        "accept",
    ),
}
_VALIDATORS = {kind: compile_schema(schema) for kind, schema in _EVENTS.items()}
_HEAD = {"v": {"const": VERSION}, "id": _NAME}
_INPUT = compile_schema(
    closed(
        {
            **_HEAD,
            "type": {"const": "input"},
            "events": {
                "type": "array",
                "minItems": 1,
                "maxItems": EVENTS_MAX,
                "items": {
                    "type": "object",
                    "required": ["kind"],
                    "properties": {"kind": {"enum": sorted(_EVENTS)}},
                },
            },
        },
        ["type", "events"],
    )
)
_PING = compile_schema(closed({**_HEAD, "type": {"const": "ping"}}, ["type"]))


def read_frame(event: Mapping[str, Any]) -> dict[str, Any]:
    """Parse a viewer's frame and check it against its schema. Errors never contain typed text.

    Raises:
        InvalidInput: The frame is not valid.
    """
    text = str(event.get("text"))
    frame = load_json(text.encode("utf-8", "surrogatepass"), limit=FRAME_BYTES)
    if not isinstance(frame, dict) or frame.get("type") not in ("input", "ping"):
        raise InvalidInput("type: must be one of input, ping.")
    if frame["type"] == "ping":
        check(_PING, frame)
        return frame
    check(_INPUT, frame)
    for number, one in enumerate(frame["events"]):
        try:
            check(_VALIDATORS[one["kind"]], one)
        except InvalidInput as wrong:
            field = str((wrong.details or {}).get("path", "")) or one["kind"]
            raise InvalidInput(f"events.{number}: {field} is not valid.") from None
    events = [coerce_integers(one, _EVENTS[one["kind"]]) for one in frame["events"]]
    return {**frame, "events": events}


def live_frame(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the frame of a message about the page, from the worker or this process."""
    return {"v": VERSION, **message}
