"""What a workspace tool answers when it could not do what it was asked (S4 §0.2).

WorkspaceFailed          E_INTERNAL   a defect, or a disk that fails
├── PathDenied           E_DENY_PATH  outside the root, forbidden, or a link
├── PathNotFound             E_NOT_FOUND
├── DiskFailed           E_IO
├── TooLarge             E_TOO_LARGE
├── NotText              E_ENCODING
├── ParseFailed          E_PARSE_FAIL
├── LintFailed           E_LINT_FAIL
├── WriteConflict        E_CONFLICT
├── PreviewFailed        E_PREVIEW_FAIL
├── WorkspaceTimeout              E_TIMEOUT
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
        recoverable: another call may succeed, changed or later.
    """

    code: ClassVar[str] = "E_INTERNAL"
    recoverable: ClassVar[bool] = False

    def __init__(
        self, message: str, *, hint: str | None = None, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message, details=details)
        self.hint = hint

    def as_dict(self) -> dict[str, Any]:
        """Return the one shape of errors, with what S4's has besides."""
        told = super().as_dict() | {"recoverable": self.recoverable}
        return told | ({"hint": self.hint} if self.hint else {})

    def as_workspace_error(self) -> dict[str, Any]:
        """Return the error object of S4 §0.2."""
        told: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            told["details"] = self.details
        if self.hint:
            told["hint"] = self.hint
        return {"error": told | {"recoverable": self.recoverable}}


class PathDenied(WorkspaceFailed):
    """The path leads out of the root, is forbidden, or goes over a link."""

    code = "E_DENY_PATH"
    recoverable = True


class PathNotFound(WorkspaceFailed):
    """There is no such file, folder or snapshot."""

    code = "E_NOT_FOUND"
    recoverable = True


class DiskFailed(WorkspaceFailed):
    """The file system refused."""

    code = "E_IO"
    recoverable = False


class TooLarge(WorkspaceFailed):
    """More bytes than the workspace's limit."""

    code = "E_TOO_LARGE"
    recoverable = True


class NotText(WorkspaceFailed):
    """The file is no UTF-8 text."""

    code = "E_ENCODING"
    recoverable = False


class ParseFailed(WorkspaceFailed):
    """The content cannot be parsed at all."""

    code = "E_PARSE_FAIL"
    recoverable = False


class LintFailed(WorkspaceFailed):
    """The content breaks a rule that stops the tool."""

    code = "E_LINT_FAIL"
    recoverable = True


class WriteConflict(WorkspaceFailed):
    """The file is not any more what it was, or another call writes it."""

    code = "E_CONFLICT"
    recoverable = True


class PreviewFailed(WorkspaceFailed):
    """The local preview server does not answer, or not as it should."""

    code = "E_PREVIEW_FAIL"
    recoverable = True


class WorkspaceTimeout(WorkspaceFailed):
    """It did not end in time."""

    code = "E_TIMEOUT"
    recoverable = True


class PolicyViolation(WorkspaceFailed):
    """The workspace's policy does not allow it."""

    code = "E_POLICY_VIOLATION"
    recoverable = True


class ToolDisabled(WorkspaceFailed):
    """The tool is not to be had here."""

    code = "E_TOOL_DISABLED"
    recoverable = False


class NotSupported(WorkspaceFailed):
    """This installation cannot do it."""

    code = "E_UNSUPPORTED"
    recoverable = False


class BadArguments(WorkspaceFailed):
    """An argument is missing, malformed or out of range."""

    code = "E_BAD_ARGS"
    recoverable = True
