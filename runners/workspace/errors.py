"""The errors of workspace tools, with the codes of S4 §0.2.

WorkspaceFailed          E_INTERNAL   a defect in the tool, or a failing disk
├── PathDenied           E_DENY_PATH  outside the root, forbidden, or a link
├── PathNotFound         E_NOT_FOUND
├── DiskFailed           E_IO
├── TooLarge             E_TOO_LARGE
├── NotText              E_ENCODING
├── ParseFailed          E_PARSE_FAIL
├── LintFailed           E_LINT_FAIL
├── WriteConflict        E_CONFLICT
├── PreviewFailed        E_PREVIEW_FAIL
├── WorkspaceTimeout     E_TIMEOUT
├── PolicyViolation      E_POLICY_VIOLATION
├── ToolDisabled         E_TOOL_DISABLED
├── NotSupported         E_UNSUPPORTED
└── BadArguments         E_BAD_ARGS
"""

from __future__ import annotations

from typing import Any, ClassVar

from runners.errors import ToolFailed


class WorkspaceFailed(ToolFailed):
    """A workspace tool failed.

    Attributes:
        hint: what the caller can do about it.
        recoverable: the same call may succeed later, or with other arguments.
    """

    code: ClassVar[str] = "E_INTERNAL"
    recoverable: ClassVar[bool] = False

    def __init__(
        self, message: str, *, hint: str | None = None, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message, details=details)
        self.hint = hint

    def as_dict(self) -> dict[str, Any]:
        """Return the project's common error object, extended by S4's recoverable and hint."""
        error = super().as_dict() | {"recoverable": self.recoverable}
        return error | ({"hint": self.hint} if self.hint else {})

    def as_workspace_error(self) -> dict[str, Any]:
        """Return the error response of S4 §0.2: `{"error": {…}}`."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            error["details"] = self.details
        if self.hint:
            error["hint"] = self.hint
        return {"error": error | {"recoverable": self.recoverable}}


class PathDenied(WorkspaceFailed):
    """The path leaves the root, contains a forbidden name, or goes through a link."""

    code = "E_DENY_PATH"
    recoverable = True


class PathNotFound(WorkspaceFailed):
    """The file, folder or snapshot does not exist."""

    code = "E_NOT_FOUND"
    recoverable = True


class DiskFailed(WorkspaceFailed):
    """The file system returned an error."""

    code = "E_IO"
    recoverable = False


class TooLarge(WorkspaceFailed):
    """The content or the result is larger than a limit."""

    code = "E_TOO_LARGE"
    recoverable = True


class NotText(WorkspaceFailed):
    """The content is not UTF-8 text."""

    code = "E_ENCODING"
    recoverable = False


class ParseFailed(WorkspaceFailed):
    """The content cannot be parsed at all."""

    code = "E_PARSE_FAIL"
    recoverable = False


class LintFailed(WorkspaceFailed):
    """The content has more errors than the tool reports one by one."""

    code = "E_LINT_FAIL"
    recoverable = True


class WriteConflict(WorkspaceFailed):
    """The file has changed meanwhile, or another call is writing it."""

    code = "E_CONFLICT"
    recoverable = True


class PreviewFailed(WorkspaceFailed):
    """The local preview server does not respond, or its response is unusable."""

    code = "E_PREVIEW_FAIL"
    recoverable = True


class WorkspaceTimeout(WorkspaceFailed):
    """The operation did not finish before its deadline."""

    code = "E_TIMEOUT"
    recoverable = True


class PolicyViolation(WorkspaceFailed):
    """The workspace's policy does not allow the call."""

    code = "E_POLICY_VIOLATION"
    recoverable = True


class ToolDisabled(WorkspaceFailed):
    """The tool is not available for this call."""

    code = "E_TOOL_DISABLED"
    recoverable = False


class NotSupported(WorkspaceFailed):
    """This installation or call lacks what the tool needs."""

    code = "E_UNSUPPORTED"
    recoverable = False


class BadArguments(WorkspaceFailed):
    """An argument is missing, malformed or out of range."""

    code = "E_BAD_ARGS"
    recoverable = True
