"""Tool failures: a tool was called and could not do what the caller requested.

    ToolFailed
    ├── InvalidTarget         the URL or argument cannot be used (INVALID_PARAMETER)
    ├── AddressNotAllowed     the caller's trust level does not allow the address
    ├── ElementNotFound       no element matches the locator
    │   └── ElementChanged    the element is not as it was judged
    ├── NavigationTimeout     the page did not load in time
    │   └── ConditionNotMet   the condition that the caller waits for did not become true
    │       └── NothingSent   and the submit before it caused nothing
    ├── NavigationFailed      the page cannot be reached (refused, unknown host, TLS, …)
    ├── HttpErrorPage         the server answered with an HTTP error status
    ├── PageCrashed           the page, its browser or the browser's driver died
    ├── LoginNotConfirmed     the login form was sent, but nothing shows that the login worked
    ├── SearchNotConfirmed    a search was submitted, and nothing shows that it happened
    ├── PageLost              the page is gone after a step that must not be repeated
    ├── RunnerFailed          a remote runner could not be called, or its tool failed (S3 §6)
    ├── ToolTimeout           the call's own deadline passed
    ├── ModelUnavailable      no model is configured, or it is unreachable, or it rejects the key
    ├── ModelFailed           the model's reply was interrupted, late, or a server error
    │   └── ModelRefused      the model's server rejects the request
    └── ToolBroken            an unexpected exception inside a tool: a defect of this product

`code` is S0's where S0 has one; every other failure ends a run as STEP_EXECUTION_FAILED with
details.causeCode. The engine reads `retryable` before it tries a step again.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar


class ToolFailed(Exception):
    """A tool could not do what the caller requested.

    Args:
        recovery: what to do, if that depends on the case; by default the class's text.
    """

    code: ClassVar[str] = "STEP_EXECUTION_FAILED"
    retryable: ClassVar[bool] = False
    recovery: str = "Retry or repair only the failed step."

    def __init__(
        self, message: str, *, details: dict[str, Any] | None = None, recovery: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details or {}
        if recovery is not None:
            self.recovery = recovery

    def as_dict(self) -> dict[str, Any]:
        """Return errorCode, message, details, retryable and recovery: the shape of every API."""
        return {
            "errorCode": self.code,
            "message": self.message,
            "details": self.details,
            "retryable": self.retryable,
            "recovery": self.recovery,
        }


class InvalidTarget(ToolFailed):
    """The URL or argument cannot be used."""

    code = "INVALID_PARAMETER"
    recovery = "Correct the range or type of the parameter named in the message."


class AddressNotAllowed(ToolFailed):
    """The address is private, loopback, link-local or metadata, and the caller is remote."""

    code = "TRUST_LEVEL_NOT_ALLOWED"
    recovery = (
        "Use a public address, or submit the run as a local caller: over MCP stdio, or with a token"
        " created by `manage.py create_token --trust local`."
    )


class ElementNotFound(ToolFailed):
    """No element matches the locator."""

    code = "ELEMENT_NOT_FOUND"
    retryable = True
    recovery = "Read the page again, then retry; change the selector or the words if necessary."


class ElementChanged(ElementNotFound):
    """The element is not as it was judged; details.changed has what differs, before and after."""

    retryable = False
    recovery = "Read the page again, then decide what to do."


class NavigationTimeout(ToolFailed):
    """The page did not load in time."""

    code = "NAVIGATION_TIMEOUT"
    retryable = True
    recovery = (
        "Check that the server works, then try again later; raise the timeout if the call has one."
    )


class ConditionNotMet(NavigationTimeout):
    """The condition that the caller waits for did not become true.

    details.shown is the beginning of what the page shows, details.changing what kept changing, and
    details.afterSubmit what happened since watch_page.
    """

    recovery = (
        "Compare the condition with what the page shows (details.shown). Then loosen or correct the"
        " condition, raise its timeoutMs, or split the step."
    )

    def after_submit(self, did: Mapping[str, bool]) -> ConditionNotMet:
        """Return the failure with what the page did after a submit: {navigated, requested,
        changed}.
        """
        done = [word for name, word in _DID.items() if did[name]]
        kind, said = (ConditionNotMet, " and ".join(done)) if done else (NothingSent, "did nothing")
        message = f"{self.message} After the submit the page {said}."
        return kind(message, details={**self.details, "afterSubmit": dict(did)})


class NothingSent(ConditionNotMet):
    """The condition did not become true, and the submit before it caused nothing on the page."""

    retryable = False
    recovery = (
        "The submit did nothing, so waiting longer does not help. Look at the screenshot, then name"
        " the button in `submit`, or correct the field."
    )


_DID = {"navigated": "navigated", "requested": "sent a request", "changed": "changed what it shows"}


class NavigationFailed(ToolFailed):
    """The page cannot be reached; details.netError names the browser's own error."""

    code = "STEP_EXECUTION_FAILED"
    recovery = "Check that the address is right and reachable from the worker."


_PAGE_OF_ERROR = (
    "The page's text is in details.artifactId (read_page_content); templates with onHttpError: keep"
    " accept it."
)


def _after(status: int) -> str:
    """Return what to do after an HTTP error status."""
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return "Log in first (login_keep_session), then use its sessionId, if the page needs that."
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return "Try again later: the address is right, but the server cannot answer now."
    return "Correct the address."


class HttpErrorPage(ToolFailed):
    """The server answered with an HTTP error status; details.httpStatus is the status, and
    details.artifactId the page that it sent.
    """

    code = "STEP_EXECUTION_FAILED"

    def __init__(self, status: int, message: str, *, details: dict[str, Any]) -> None:
        super().__init__(message, details=details, recovery=f"{_after(status)} {_PAGE_OF_ERROR}")


class PageCrashed(ToolFailed):
    """The page, its browser or the browser's driver died."""

    code = "PAGE_CRASHED"
    retryable = True
    recovery = "Create a new tab or session and continue from a safe step."


class LoginNotConfirmed(ToolFailed):
    """The login form was sent, but the success indicator did not come true, or the page that
    followed shows that the login was refused.
    """

    code = "STEP_EXECUTION_FAILED"
    recovery = "Open the screenshot, check the credentials and successIndicator, then submit again."


class SearchNotConfirmed(ToolFailed):
    """A search was submitted, and nothing shows that it happened; details.reason names the case."""

    code = "STEP_EXECUTION_FAILED"
    recovery = (
        "Look at the screenshot, then name the button in `submit`, or correct `searchField`. If the"
        " page searches while one types, give `waitForResults` a condition that holds only once the"
        " results are shown."
    )


class PageLost(ToolFailed):
    """The page of earlier steps is gone, and reopening it would repeat a step that runs once."""

    code = "STEP_EXECUTION_FAILED"
    recovery = (
        "Check on the site what the step named in the message did before you submit the run again."
    )


class RunnerFailed(ToolFailed):
    """A remote runner could not be called, sent an invalid response, or its tool failed (S3 §6).

    details.reason names the cause, details.effect whether the call may have had an effect. An
    instance is retryable if nothing was sent, or if the runner reports its failure as retryable.
    """

    code = "TOOL_EXEC_FAILED"
    recovery = "See details.reason; if details.effect is unknown, check first what was done."


class ToolTimeout(ToolFailed):
    """The call's own deadline passed."""

    code = "STEP_EXECUTION_FAILED"
    retryable = True
    recovery = "Raise the timeout, or split the step."


class ModelUnavailable(ToolFailed):
    """No model is configured, its server is unreachable, or the server rejects the key."""

    code = "MODEL_UNAVAILABLE"
    recovery = (
        "Set CONTINUITY_LLM_MODEL and what it needs before `manage.py up` or the worker starts;"
        " `manage.py doctor` reports what is wrong."
    )


class ModelFailed(ToolFailed):
    """The model's reply was interrupted twice, came late, or every attempt got a server error."""

    code = "LLM_STREAM_FAILED"
    retryable = True
    recovery = "Try again later; check the model's server if the failure persists."


class ModelRefused(ModelFailed):
    """The model's server rejects the request; sending the same request again does not help."""

    retryable = False


class ToolBroken(ToolFailed):
    """An unexpected exception inside a tool: a defect of this product."""

    code = "EXECUTION_ERROR"
    recovery = "Report the error id; try a simpler input meanwhile."
