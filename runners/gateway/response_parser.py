"""Parse the response of a runner strictly (S3 §4): a result, or a result with updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from decisions.foundation.validation.json_values import has_too_many_values
from runners.errors import RunnerFailed
from runners.gateway.request import Update

MAX_UPDATES = 100_000
MAX_VALUES = 250_000  # of a response: parsing 8 MiB of small arrays would take seconds
MESSAGE_MAX = 2_000
CODE_MAX = 64
_DETAILS_MAX_BYTES = 16 * 1024


class InvalidRunnerResponse(Exception):
    """The response violates the protocol; `reason` is not_json, shape or too_large."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


@dataclass(frozen=True, slots=True)
class RunnerResponse:
    """A whole response: the tool's result and all its updates."""

    result: Mapping[str, Any]
    updates: list[Update]


def parse_response(body: bytes) -> RunnerResponse:
    """Parse a whole response.

    Raises:
        InvalidRunnerResponse: It is not JSON, has neither or both of the two forms, or has too
            many values or updates.
    """
    whole = _loaded(body)
    if not isinstance(whole, dict):
        raise _shape("it is not an object")
    wrapped, direct = bool({"result", "updates"} & whole.keys()), "ok" in whole
    if wrapped and direct:
        raise _shape("it has both forms of a result at once")
    raw_updates = whole.get("updates")
    if raw_updates is not None and not isinstance(raw_updates, list):
        raise _shape("updates is not an array")
    check_update_count(len(raw_updates or ()))
    updates = [parse_update(one) for one in raw_updates or ()]
    return RunnerResponse(_result(whole.get("result") if wrapped else whole), updates)


def parse_update(value: Any) -> Update:
    """Parse one update; a string alone is its delta.

    Raises:
        InvalidRunnerResponse: It is not an update.
    """
    if isinstance(value, str):
        return Update(value, None)
    if not isinstance(value, dict) or not isinstance(value.get("delta"), str):
        raise _shape("an update has no delta")
    at = value.get("at")
    if not (at is None or (isinstance(at, str) and len(at) <= 64)):
        raise _shape("the time of an update is not a string")
    return Update(value["delta"], at)


def parse_update_bytes(raw: bytes) -> Update:
    """Parse the bytes of one update of a response that is still arriving.

    Raises:
        InvalidRunnerResponse: It is not JSON or not an update.
    """
    return parse_update(_loaded(raw))


def check_update_count(updates: int) -> None:
    """Raise InvalidRunnerResponse if there are more updates than a call may send."""
    if updates > MAX_UPDATES:
        raise InvalidRunnerResponse(
            "too_large", f"The runner sent more than {MAX_UPDATES} updates."
        )


def error_code_in(body: bytes) -> str | None:
    """Return the error code in the body of an error response, or None."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    error = value.get("error") if isinstance(value, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code[:CODE_MAX] if isinstance(code, str) and code else None


def error_of_runner(error: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a runner's error into the error of a tool call (`ToolFailed.as_dict`)."""
    details: dict[str, Any] = {"reason": "runner", "runnerCode": error["code"][:CODE_MAX]}
    more = error.get("details")
    if more and len(orjson.dumps(more)) <= _DETAILS_MAX_BYTES:
        details["runnerDetails"] = more
    message = error["message"][:MESSAGE_MAX]
    message = message or f"The runner's tool failed: {error['code'][:CODE_MAX]}"
    failed = RunnerFailed(message, details=details).as_dict()
    return failed | {"retryable": bool(error.get("retryable"))}


def _loaded(body: bytes) -> Any:
    if has_too_many_values(body, MAX_VALUES):
        raise InvalidRunnerResponse("too_large", f"The runner sent more than {MAX_VALUES} values.")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise InvalidRunnerResponse("not_json", "The runner's response is not JSON.") from None


def _result(value: Any) -> Mapping[str, Any]:
    """Check a ToolResult and return it (S3 §4.1)."""
    if not isinstance(value, dict) or not isinstance(value.get("ok"), bool):
        raise _shape("ok is neither true nor false")
    try:
        orjson.dumps(value)
    except TypeError:
        raise _shape("it is nested too deeply") from None
    if value["ok"]:
        if "output" not in value or value.get("error") is not None:
            raise _shape("ok is true, but output is missing or error is set")
        return value
    error = value.get("error")
    if not isinstance(error, dict) or not _is_error(error):
        raise _shape("ok is false, but error is not an object with code and message")
    return value


def _is_error(error: Mapping[str, Any]) -> bool:
    code, details = error.get("code"), error.get("details")
    return (
        isinstance(code, str)
        and code != ""
        and isinstance(error.get("message"), str)
        and isinstance(error.get("retryable"), bool | None)
        and isinstance(details, dict | None)
    )


def _shape(why: str) -> InvalidRunnerResponse:
    return InvalidRunnerResponse("shape", f"The runner's response violates the protocol: {why}.")
