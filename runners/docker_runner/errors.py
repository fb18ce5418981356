"""Errors that prevent the runner from starting, and errors of calls.

CannotStart               the options or the machine do not allow it
└── IsolationMissing      the requested isolation is not available
RunnerToolFailed          an accepted call failed: {"ok": false, "error": …}
├── UnknownRunnerTool     TOOL_NOT_FOUND
├── WrongArguments        INVALID_ARGUMENTS
├── CommandTimedOut       TIMEOUT            with the output so far
├── CommandNotStarted     SANDBOX_FAILED     the command was not executed
├── CommandInterrupted    INTERRUPTED        it may have been executed, as a whole or in part
├── NetworkClosed         NETWORK_NOT_ALLOWED
├── RequestFailed         REQUEST_FAILED     the address does not answer
└── RunnerDefect          INTERNAL_ERROR     a defect of the runner

File tools fail with the codes of `runners.workspace.errors` (E_NOT_FOUND, E_DENY_PATH, …).
"""

from __future__ import annotations

from typing import Any, ClassVar

from runners.errors import ToolFailed


class CannotStart(Exception):
    """The runner cannot start; the message has the reason and the fix."""


class IsolationMissing(CannotStart):
    """The requested isolation is not available on this machine."""


class RunnerToolFailed(ToolFailed):
    """A call was accepted and failed."""

    code = "TOOL_EXEC_FAILED"


class UnknownRunnerTool(RunnerToolFailed):
    """The runner has no such tool."""

    code = "TOOL_NOT_FOUND"


class WrongArguments(RunnerToolFailed):
    """The arguments do not match the tool's schema."""

    code = "INVALID_ARGUMENTS"


class CommandTimedOut(RunnerToolFailed):
    """The command exceeded its time limit and was killed with all its processes."""

    code = "TIMEOUT"


class CommandNotStarted(RunnerToolFailed):
    """The isolation could not be set up; nothing was executed."""

    code = "SANDBOX_FAILED"
    retryable: ClassVar[bool] = True


class CommandInterrupted(RunnerToolFailed):
    """The runner or the container engine stopped during the call; its effect is unknown."""

    code = "INTERRUPTED"

    def __init__(self, message: str) -> None:
        super().__init__(message, details={"effect": "unknown"})


class NetworkClosed(RunnerToolFailed):
    """The runner has no network access, or not to this address."""

    code = "NETWORK_NOT_ALLOWED"


class RequestFailed(RunnerToolFailed):
    """The address does not answer, or not with HTTP."""

    code = "REQUEST_FAILED"


class RunnerDefect(RunnerToolFailed):
    """An unexpected exception of a tool."""

    code = "INTERNAL_ERROR"


def error_object(failed: ToolFailed) -> dict[str, Any]:
    """Return the error of a ToolResult (S3 §4.1)."""
    error = {"code": failed.code, "message": failed.message, "retryable": failed.retryable}
    return error | ({"details": failed.details} if failed.details else {})
