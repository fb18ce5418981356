"""What keeps a runner from starting, and what a call that it took can fail with.

CannotStart               the options or the machine do not allow it; said in one sentence
└── IsolationMissing      commands cannot be kept apart here in the way that was asked for
RunnerFailed              a call that was taken and failed: {"ok": false, "error": …}
├── ToolUnknown           TOOL_NOT_FOUND
├── WrongArguments        INVALID_ARGUMENTS
├── CommandTimedOut       TIMEOUT            with what it printed so far
├── CommandNotStarted     SANDBOX_FAILED     the command itself never ran
├── NetworkClosed         NETWORK_NOT_ALLOWED
├── RequestFailed         REQUEST_FAILED     an address that does not answer
└── RunnerBroken          INTERNAL_ERROR     a defect of ours

Files fail with the codes of `runners.workspace.errors` (E_NOT_FOUND, E_DENY_PATH, …).
"""

from __future__ import annotations

from typing import Any, ClassVar

from runners.errors import ToolFailed


class CannotStart(Exception):
    """The runner does not start; the message says why, and the way out."""


class IsolationMissing(CannotStart):
    """The isolation that was asked for cannot be had on this machine."""


class RunnerFailed(ToolFailed):
    """A call was taken, and failed."""

    code = "TOOL_EXEC_FAILED"


class ToolUnknown(RunnerFailed):
    """This runner has no such tool."""

    code = "TOOL_NOT_FOUND"


class WrongArguments(RunnerFailed):
    """The arguments are not as the tool's schema says."""

    code = "INVALID_ARGUMENTS"


class CommandTimedOut(RunnerFailed):
    """It did not end by its deadline, and was killed with all that it had started."""

    code = "TIMEOUT"


class CommandNotStarted(RunnerFailed):
    """What keeps commands apart could not be set up; nothing was executed."""

    code = "SANDBOX_FAILED"
    retryable: ClassVar[bool] = True


class NetworkClosed(RunnerFailed):
    """The runner has no network, or none for this address."""

    code = "NETWORK_NOT_ALLOWED"


class RequestFailed(RunnerFailed):
    """The address does not answer, or not in HTTP."""

    code = "REQUEST_FAILED"


class RunnerBroken(RunnerFailed):
    """An exception that no tool should let out."""

    code = "INTERNAL_ERROR"


def error_of(failed: ToolFailed) -> dict[str, Any]:
    """Return the error of a ToolResult (S3 §4.1)."""
    told = {"code": failed.code, "message": failed.message, "retryable": failed.retryable}
    return told | ({"details": failed.details} if failed.details else {})
