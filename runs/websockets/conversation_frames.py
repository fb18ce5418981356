"""The frames of a task's WebSocket: JSON texts `{v: 1, type, id?, …}` with the types of S1 §3.

A client sends `frontend_message` frames (user_message, takeover, resume, stop), and each is
answered with an `ack`. It receives `frontend_event` frames: the events of the task's log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from decisions.foundation.errors import InvalidInput, Refused
from decisions.foundation.infra.clock import now_ms
from decisions.foundation.validation.json_input import BODY_LIMIT, load_json
from decisions.foundation.validation.json_schema import (
    OFFSET,
    check,
    closed,
    coerce_integers,
    compile_schema,
)
from runs.api.schemas.tasks import MESSAGE_INPUT
from runs.events.types import SNAPSHOT_SYNC

VERSION = 1
_ID = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": "^[^\\u0000-\\u001f\\u007f]*$",
}
_HEAD = {"v": {"const": VERSION}, "id": _ID}
_USER_MESSAGE = {
    name: MESSAGE_INPUT["properties"][name] for name in ("content", "onBusy", "outputSchema")
}


def _frame(type_: str, properties: Mapping[str, Any], *required: str) -> Any:
    fields = {**_HEAD, "type": {"const": type_}, **properties}
    return compile_schema(closed(fields, ["type", *required]))


def _message(type_: str, properties: Mapping[str, Any], *required: str) -> Any:
    common = {"type": {"const": type_}, "taskId": {"type": "string"}}
    message = closed({**common, **properties}, ["type", *required])
    return _frame("frontend_message", {"message": message}, "message")


_SECRET = {"type": "string", "minLength": 1, "maxLength": 256}
_FRAMES = {
    "auth": _frame("auth", {"ticket": _SECRET, "token": _SECRET, "after": OFFSET}),
    "ping": _frame("ping", {}),
}
_MESSAGES = {
    "user_message": _message("user_message", _USER_MESSAGE, "content"),
    "takeover": _message("takeover", {}),
    "resume": _message("resume", {}),
    "stop": _message("stop", {}),
}


def read_frame(event: Mapping[str, Any], *, task_id: str) -> dict[str, Any]:
    """Parse a client's frame and check it against the schema of its type.

    Raises:
        InvalidInput: The frame is not valid, or names another task.
    """
    text = str(event.get("text"))
    frame = load_json(text.encode("utf-8", "surrogatepass"), limit=BODY_LIMIT)
    if not isinstance(frame, dict):
        raise InvalidInput("A frame must be a JSON object with a type.")
    check(_schema_of(frame), frame)
    if "after" in frame:
        frame = {**frame, "after": coerce_integers(frame["after"], OFFSET)}
    named = frame.get("message", {}).get("taskId", task_id)
    if named != task_id:
        raise InvalidInput("message.taskId: this connection belongs to another task.")
    return frame


def _schema_of(frame: Mapping[str, Any]) -> Any:
    type_ = frame.get("type")
    if type_ == "frontend_message":
        message = frame.get("message")
        named = message.get("type") if isinstance(message, dict) else None
        return _known(_MESSAGES, named, "message.type")
    return _known({**_FRAMES, "frontend_message": None}, type_, "type")


def _known(schemas: Mapping[str, Any], name: Any, where: str) -> Any:
    if not isinstance(name, str) or name not in schemas:
        raise InvalidInput(f"{where}: must be one of {', '.join(sorted(schemas))}.")
    return schemas[name]


def id_of(event: Mapping[str, Any]) -> str | None:
    """Return the id of a frame that may be invalid; None where it has no usable id."""
    try:
        frame = orjson.loads(event.get("text") or "")
    except ValueError:
        return None
    named = frame.get("id") if isinstance(frame, dict) else None
    return named if isinstance(named, str) and len(named) <= 255 else None


def ack(frame_id: str | None, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a frame that was carried out."""
    return _with_id({"v": VERSION, "type": "ack", "ok": True, "result": result}, frame_id)


def error_ack(frame_id: str | None, refusal: Refused) -> dict[str, Any]:
    """Return the answer to a frame that is refused; the connection stays open."""
    answer = {"v": VERSION, "type": "ack", "ok": False, "error": refusal.as_dict()}
    return _with_id(answer, frame_id)


def pong(frame_id: str | None) -> dict[str, Any]:
    """Return the answer to a ping."""
    return _with_id({"v": VERSION, "type": "pong"}, frame_id)


def event_frame(task_id: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the frame of an event of the task's log."""
    return {"v": VERSION, "type": "frontend_event", "taskId": task_id, "event": event}


def snapshot(task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the frame with the task's current state and the seq of its log."""
    state = {"seq": task["lastSeq"], "state": task}
    return event_frame(task["taskId"], {"type": SNAPSHOT_SYNC, "at": now_ms(), "data": state})


def browser_state(task_id: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the frame with the state of the paired browser that the task acts in."""
    return event_frame(task_id, {"type": SNAPSHOT_SYNC, "at": now_ms(), "data": dict(state)})


def _with_id(frame: dict[str, Any], frame_id: str | None) -> dict[str, Any]:
    return frame if frame_id is None else {**frame, "id": frame_id}
