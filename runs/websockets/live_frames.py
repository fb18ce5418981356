"""What goes over the WebSocket of a live page: JSON texts `{v: 1, type, …}`. A page sends `input`,
and gets `live_state`, `live_frame`, `live_dialog`, `live_tab` and `live_problem`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from decisions.errors import InvalidInput
from decisions.validation.json_input import load_json
from decisions.validation.json_schema import check, compile_schema
from runs.websockets.conversation_frames import VERSION

FRAME_BYTES = 64 * 1024
EVENTS_MAX, TEXT_MAX = 64, 10_000
_PLACE = {"type": "number", "minimum": -10_000, "maximum": 10_000}
_WAY = {"type": "number", "minimum": -10_000, "maximum": 10_000}
_MODIFIERS = {"type": "integer", "minimum": 0, "maximum": 15}
_TEXT = {"type": "string", "minLength": 1, "maxLength": TEXT_MAX, "pattern": "^[^\\u0000]*$"}
_NAME = {"type": "string", "minLength": 1, "maxLength": 40}
_BUTTONS = ["none", "left", "middle", "right", "back", "forward"]


def _event(kind: str, properties: Mapping[str, Any], *required: str) -> Any:
    return compile_schema(
        {
            "type": "object",
            "required": ["kind", *required],
            "additionalProperties": False,
            "properties": {"kind": {"const": kind}, **properties},
        }
    )


_POINT = {"x": _PLACE, "y": _PLACE, "modifiers": _MODIFIERS}
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
        "wheel", {**_POINT, "deltaX": _WAY, "deltaY": _WAY}, "x", "y", "deltaX", "deltaY"
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
_HEAD = {"v": {"const": VERSION}, "id": _NAME}
_INPUT = compile_schema(
    {
        "type": "object",
        "required": ["type", "events"],
        "additionalProperties": False,
        "properties": {
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
    }
)
_PING = compile_schema(
    {
        "type": "object",
        "required": ["type"],
        "additionalProperties": False,
        "properties": {**_HEAD, "type": {"const": "ping"}},
    }
)


def read_frame(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a frame of a page that is looked at, by its schema. What was typed is in no error.

    Raises:
        InvalidInput: Any of its kinds.
    """
    text = str(event.get("text"))
    frame = load_json(text.encode("utf-8", "surrogatepass"), limit=FRAME_BYTES)
    if not isinstance(frame, dict) or frame.get("type") not in ("input", "ping"):
        raise InvalidInput("type: one of input, ping.")
    if frame["type"] == "ping":
        check(_PING, frame)
        return frame
    check(_INPUT, frame)
    for number, one in enumerate(frame["events"]):
        try:
            check(_EVENTS[one["kind"]], one)
        except InvalidInput as wrong:
            field = str((wrong.details or {}).get("path", "")) or one["kind"]
            raise InvalidInput(f"events.{number}: {field} is not as it should be.") from None
    return frame


def state(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a worker, or this process, tells of the page as a frame."""
    return {"v": VERSION, **told}
