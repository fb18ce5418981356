"""What went wrong out there: a tool was called and failed.

    ToolFailed
    ├── InvalidTarget         the address or argument cannot be acted on (INVALID_PARAMETER)
    ├── AddressNotAllowed     the address is not for callers of this trust level
    ├── ElementNotFound       no element matches the locator
    ├── NavigationTimeout     the page did not arrive in time
    ├── NavigationFailed      the page cannot be reached (refused, unknown host, TLS, …)
    ├── PageCrashed           the page, its browser or its driver died
    ├── LoginNotConfirmed     the form was sent, and nothing says that the login worked
    ├── PageLost              it died after a step that is never repeated
    ├── RunnerFailed          a runner elsewhere could not be asked, or did not do it (S3 §6)
    ├── ToolTimeout           the call's own deadline passed
    ├── ModelUnavailable      no model can be asked: none is set, out of reach, or a bad key
    ├── ModelFailed           the model's answer was cut, late, or an error of its server
    │   └── ModelRefused      the model's server does not take what it was asked
    └── ToolBroken            a defect of ours: unexpected exception inside a tool

`code` is S0's where S0 has one; every other failure ends a run as STEP_EXECUTION_FAILED with
details.causeCode. `retryable` is what the engine asks before it tries a step again.
"""

from __future__ import annotations

from typing import Any, ClassVar


class ToolFailed(Exception):
    """A tool that could not do what it was asked."""

    code: ClassVar[str] = "STEP_EXECUTION_FAILED"
    retryable: ClassVar[bool] = False
    recovery: ClassVar[str] = "Retry or mend the failed step alone."

    def __init__(self, message: str, *, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = details or {}

    def as_dict(self) -> dict[str, Any]:
        """Return errorCode, message, details, retryable and recovery, as every door shows them."""
        return {
            "errorCode": self.code,
            "message": self.message,
            "details": self.details,
            "retryable": self.retryable,
            "recovery": self.recovery,
        }


class InvalidTarget(ToolFailed):
    """The address or argument cannot be acted on."""

    code = "INVALID_PARAMETER"
    recovery = "Correct the range or type of the parameter named in the message."


class AddressNotAllowed(ToolFailed):
    """The address is private, loopback, link-local or metadata, and the caller is remote."""

    code = "TRUST_LEVEL_NOT_ALLOWED"
    recovery = (
        "Use a public address, or submit the run as a local caller: over MCP stdio, or with a token"
        " made by `manage.py create_token --trust local`."
    )


class ElementNotFound(ToolFailed):
    """No element matches the locator."""

    code = "ELEMENT_NOT_FOUND"
    retryable = True
    recovery = "Read the page again, then retry; change the selector or the words if necessary."


class NavigationTimeout(ToolFailed):
    """The page did not arrive in time."""

    code = "NAVIGATION_TIMEOUT"
    retryable = True
    recovery = "Loosen the wait condition, raise the timeout, or split the step."


class NavigationFailed(ToolFailed):
    """The page cannot be reached; details.netError names the browser's own error."""

    code = "STEP_EXECUTION_FAILED"
    recovery = "Check that the address is right and reachable from the worker."


class PageCrashed(ToolFailed):
    """The page, its browser or its driver died."""

    code = "PAGE_CRASHED"
    retryable = True
    recovery = "Make the tab or session anew and go on from a safe step."


class LoginNotConfirmed(ToolFailed):
    """The login form was sent, and what would tell success did not come true."""

    code = "STEP_EXECUTION_FAILED"
    recovery = "Look at the screenshot; check the credentials and successIndicator, submit again."


class PageLost(ToolFailed):
    """The page of earlier steps is gone, and one of them must not be done again to have it back."""

    code = "STEP_EXECUTION_FAILED"
    recovery = "Look at the site what came of the step named in the message; do not submit blindly."


class RunnerFailed(ToolFailed):
    """A runner elsewhere could not be asked, gave no proper answer, or its tool failed (S3 §6);
    details.reason says which, details.effect whether something may have been done. One of which
    nothing was sent says that it is retryable, and the runner of its own failures.
    """

    code = "TOOL_EXEC_FAILED"
    recovery = "See details.reason; where details.effect is unknown, look first what was done."


class ToolTimeout(ToolFailed):
    """The call's own deadline passed."""

    code = "STEP_EXECUTION_FAILED"
    retryable = True
    recovery = "Raise the timeout, or split the step."


class ModelUnavailable(ToolFailed):
    """No model can be asked: none is set, its server is out of reach, or it refuses the key."""

    code = "MODEL_UNAVAILABLE"
    recovery = (
        "Set CONTINUITY_LLM_MODEL and what it needs before `manage.py up` or the worker starts;"
        " `manage.py doctor` says what is wrong."
    )


class ModelFailed(ToolFailed):
    """The model's answer was cut twice, came late, or was an error of its server to the end."""

    code = "LLM_STREAM_FAILED"
    retryable = True
    recovery = "Try again later; look at the model's server if it goes on."


class ModelRefused(ModelFailed):
    """The model's server does not take what it was asked: asking the same again does not help."""

    retryable = False


class ToolBroken(ToolFailed):
    """A defect of ours: an exception that no tool should let out."""

    code = "EXECUTION_ERROR"
    recovery = "Report the error id; try a simpler input meanwhile."
