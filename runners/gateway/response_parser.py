"""What a runner answered, read to the letter (S3 §4): both forms, and nothing between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from runners.errors import RunnerFailed
from runners.gateway.request import Update

MAX_UPDATES = 100_000
MESSAGE_MAX = 2_000
CODE_MAX = 64
_DETAILS_MAX_BYTES = 16 * 1024


class WrongAnswer(Exception):
    """The answer is none; `reason` is not_json, shape or too_large."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


@dataclass(frozen=True, slots=True)
class Said:
    """A whole answer: what the tool came to, and every update that it told."""

    result: Mapping[str, Any]
    updates: list[Update]


def read_answer(body: bytes) -> Said:
    """Return what a whole answer says.

    Raises:
        WrongAnswer: It is no JSON, or neither of the two forms, or both.
    """
    whole = _loaded(body)
    if not isinstance(whole, dict):
        raise _shape("it is no object")
    wrapped, direct = bool({"result", "updates"} & whole.keys()), "ok" in whole
    if wrapped and direct:
        raise _shape("it is a result and a wrapped result at once")
    told = whole.get("updates")
    if told is not None and not isinstance(told, list):
        raise _shape("updates is no array")
    updates = [read_update(one) for one in told or ()]
    check_number(len(updates))
    return Said(_result(whole.get("result") if wrapped else whole), updates)


def read_update(told: Any) -> Update:
    """Return an update of an answer; a text alone is its delta.

    Raises:
        WrongAnswer: It is none.
    """
    if isinstance(told, str):
        return Update(told, None)
    if not isinstance(told, dict) or not isinstance(told.get("delta"), str):
        raise _shape("an update has no delta")
    at = told.get("at")
    if not (at is None or (isinstance(at, str) and len(at) <= 64)):
        raise _shape("an update's time is no text")
    return Update(told["delta"], at)


def cut_update(raw: bytes) -> Update:
    """Return an update that was cut out of an answer under way.

    Raises:
        WrongAnswer: It is none, or no JSON.
    """
    return read_update(_loaded(raw))


def check_number(updates: int) -> None:
    """Raise WrongAnswer where there are more updates than one call may tell."""
    if updates > MAX_UPDATES:
        raise WrongAnswer("too_large", f"The runner told more than {MAX_UPDATES} updates.")


def code_in(body: bytes) -> str | None:
    """Return the code of the error that a refusal's body tells, where it tells one."""
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    error = told.get("error") if isinstance(told, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code[:CODE_MAX] if isinstance(code, str) and code else None


def failure_of(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return the error of a call for what the runner's own says, in the one shape of errors."""
    details: dict[str, Any] = {"reason": "runner", "runnerCode": error["code"][:CODE_MAX]}
    more = error.get("details")
    if more and len(orjson.dumps(more)) <= _DETAILS_MAX_BYTES:
        details["runnerDetails"] = more
    told = error["message"][:MESSAGE_MAX] or f"The runner's tool failed: {error['code'][:CODE_MAX]}"
    failed = RunnerFailed(told, details=details).as_dict()
    return failed | {"retryable": bool(error.get("retryable"))}


def _loaded(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise WrongAnswer("not_json", "The runner's answer is no JSON.") from None


def _result(told: Any) -> Mapping[str, Any]:
    """Return a ToolResult as it has to be (S3 §4.1)."""
    if not isinstance(told, dict) or not isinstance(told.get("ok"), bool):
        raise _shape("ok is neither true nor false")
    try:
        orjson.dumps(told)
    except TypeError:
        raise _shape("it is nested too deeply") from None
    if told["ok"]:
        if "output" not in told or told.get("error") is not None:
            raise _shape("ok is true, and there is no output, or an error beside it")
        return told
    error = told.get("error")
    if not isinstance(error, dict) or not _is_error(error):
        raise _shape("ok is false, and error is no object of code and message")
    return told


def _is_error(error: Mapping[str, Any]) -> bool:
    code, details = error.get("code"), error.get("details")
    return (
        isinstance(code, str)
        and code != ""
        and isinstance(error.get("message"), str)
        and isinstance(error.get("retryable"), bool | None)
        and isinstance(details, dict | None)
    )


def _shape(why: str) -> WrongAnswer:
    return WrongAnswer("shape", f"The runner's answer is not as the protocol says: {why}.")
