"""Errors of workspace tools in the form of S4 §0.2, the same for REST and MCP."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.conf import settings

from decisions.foundation.errors import (
    BodyTooLarge,
    ConfirmationRequired,
    Conflict,
    Forbidden,
    InvalidInput,
    NotAuthenticated,
    NotFound,
    NotReady,
    NotUnicode,
    PolicyDenied,
    Refused,
    TooManyRequests,
)
from decisions.foundation.validation.storable import storable
from runners.workspace.errors import WorkspaceFailed, WorkspaceTimeout

KINDS: tuple[type[WorkspaceFailed], ...] = (WorkspaceFailed, *WorkspaceFailed.__subclasses__())
CODES = {kind.code: kind for kind in KINDS}
STATUS = {
    "E_BAD_ARGS": 400,
    "E_DENY_PATH": 403,
    "E_POLICY_VIOLATION": 403,
    "E_TOOL_DISABLED": 403,
    "E_NOT_FOUND": 404,
    "E_CONFLICT": 409,
    "E_TOO_LARGE": 413,
    "E_ENCODING": 422,
    "E_PARSE_FAIL": 422,
    "E_LINT_FAIL": 422,
    "E_INTERNAL": 500,
    "E_IO": 500,
    "E_UNSUPPORTED": 501,
    "E_PREVIEW_FAIL": 502,
    "E_TIMEOUT": 504,
}
# The first class that matches a refusal gives its code, and whether another call may succeed.
_REFUSALS: tuple[tuple[type[Refused], str, bool], ...] = (
    (NotUnicode, "E_ENCODING", True),
    (BodyTooLarge, "E_TOO_LARGE", True),
    (InvalidInput, "E_BAD_ARGS", True),
    (ConfirmationRequired, "E_POLICY_VIOLATION", True),
    (TooManyRequests, "E_POLICY_VIOLATION", True),
    (PolicyDenied, "E_POLICY_VIOLATION", False),
    (Forbidden, "E_POLICY_VIOLATION", False),
    (NotAuthenticated, "E_POLICY_VIOLATION", False),
    (NotFound, "E_NOT_FOUND", True),
    (Conflict, "E_CONFLICT", True),
    (NotReady, "E_TIMEOUT", True),
)
_IN_CHINESE: dict[type[Refused], str] = {
    NotUnicode: "请仅发送有效的 Unicode 文本。",
    BodyTooLarge: "请减小请求的内容。",
    InvalidInput: "请按该工具的输入架构修正参数。",
    ConfirmationRequired: "请先由人确认该决定，然后以相同的参数和键再次调用。",
    TooManyRequests: "请等待一秒，然后以较低的频率继续。",
    PolicyDenied: "请管理员在策略中允许该工具，或不使用它。",
    Forbidden: "请使用具有 details.scope 所列权限的令牌。",
    NotAuthenticated: "请在 Authorization: Bearer 请求头中发送有效的令牌。",
    NotFound: "请列出现有的对象，并使用其中的标识。",
    Conflict: "请重新读取当前状态后再试，或使用新的键。",
    NotReady: "请在该服务器所在的机器上运行 `manage.py doctor`，然后再次调用。",
}
_WAIT = {
    "EN": "Check what was done, then request less at once or allow more time. If details.runId is"
    " set, that run continues.",
    "ZH": "请先查看已完成的部分，再缩小范围或延长时限；若 details.runId 存在，则该运行仍在继续。",
}
_OTHER_METHOD = "请使用响应头 Allow 所列的方法。"
# Codes that a call executed by a worker may also end with.
_WORKER_CODES = {
    "INVALID_PARAMETER": "E_BAD_ARGS",
    "RUN_TIMEOUT": "E_TIMEOUT",
    "POLICY_DENIED": "E_POLICY_VIOLATION",
    "TRUST_LEVEL_NOT_ALLOWED": "E_POLICY_VIOLATION",
    "NAVIGATION_TIMEOUT": "E_TIMEOUT",
    "ELEMENT_NOT_FOUND": "E_NOT_FOUND",
    "PAGE_CRASHED": "E_PREVIEW_FAIL",
    "CHROMIUM_MISSING": "E_UNSUPPORTED",
}

# HTTP status of the errors of all other tools; 422 for codes that are not listed.
_OTHER_STATUS = {
    "INVALID_PARAMETER": 400,
    "TRUST_LEVEL_NOT_ALLOWED": 400,
    "POLICY_DENIED": 403,
    "EXECUTION_ERROR": 500,
    "CHROMIUM_MISSING": 501,
    "TOOL_EXEC_FAILED": 502,
    "NAVIGATION_TIMEOUT": 504,
    "RUN_TIMEOUT": 504,
}


class FailedCall(Refused):
    """A tool was called and failed; `error` is the tool's error (`ToolFailed.as_dict`)."""

    def __init__(self, error: Mapping[str, Any], *, http_status: int = 422) -> None:
        super().__init__(str(error.get("message", "")), details=dict(error.get("details") or {}))
        self.error = dict(error)
        self.http_status = http_status

    def as_dict(self) -> dict[str, Any]:
        """Return the tool's error."""
        return self.error


def failed_call(error: Mapping[str, Any], *, in_s4: bool) -> FailedCall:
    """Return a tool's error as a refusal with its HTTP status. For a call that a worker executed as
    a run, return the error of the call, not of the run.
    """
    details = dict(error.get("details") or {})
    cause = details.pop("causeCode", None)
    if cause is not None:
        details.pop("done", None)  # the number of earlier calls of the run; it has only one
    code = str(cause or error["errorCode"])
    # A lone surrogate from a page cannot be encoded, and would replace this error by another.
    own = storable({**error, "errorCode": code, "details": details})
    own.pop("step", None)
    if not in_s4:
        return FailedCall(own, http_status=_OTHER_STATUS.get(code, 422))
    own["errorCode"] = code if code in CODES else _WORKER_CODES.get(code, WorkspaceFailed.code)
    if own["errorCode"] == WorkspaceTimeout.code and not own.get("hint"):
        own["hint"] = _WAIT[settings.WORKSPACE_POLICY.language]
    return FailedCall(own, http_status=STATUS[own["errorCode"]])


def as_workspace_error(refused: Refused) -> dict[str, Any]:
    """Return a refusal as S4's error object."""
    if isinstance(refused, FailedCall):
        error = refused.error
        code = str(error["errorCode"])
        if code not in CODES:  # the error of a runner's tool with the name of a local one
            return error
        may_succeed = bool(error.get("recoverable", CODES[code].recoverable))
        return _object(code, refused.message, refused.details, error.get("hint"), may_succeed)
    for kind, code, recoverable in _REFUSALS:
        if isinstance(refused, kind):
            return _object(code, refused.message, refused.details, _hint(refused), recoverable)
    if _is_wrong_method(refused):
        return _object("E_UNSUPPORTED", refused.message, refused.details, _hint(refused), True)
    return _object("E_INTERNAL", refused.message, refused.details, None, refused.retryable)


def _hint(refused: Refused) -> str:
    if settings.WORKSPACE_POLICY.language == "EN":
        return refused.recovery
    for kind, hint in _IN_CHINESE.items():
        if isinstance(refused, kind):
            return hint
    return _OTHER_METHOD if _is_wrong_method(refused) else refused.recovery


def _is_wrong_method(refused: Refused) -> bool:
    """Return whether REST refused the HTTP method of the request."""
    return refused.http_status == HTTPStatus.METHOD_NOT_ALLOWED


def _object(
    code: str, message: str, details: Mapping[str, Any], hint: str | None, recoverable: bool
) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": message}
    if details:
        error["details"] = dict(details)
    if hint:
        error["hint"] = hint
    return {"error": error | {"recoverable": recoverable}}
