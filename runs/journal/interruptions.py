"""Exceptions that end a step's attempt early: a failed call, or a wait for a person.

CallFailed      a tool call failed or was denied
NeedsPerson     a tool call that a person must confirm first
└── TakenOver   a tool call that waits until a person ends the takeover of the page
NeedsAnswer     a question that the caller must answer first
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from decisions.authorization.authorize import Authorization, ToolCallRequest
from decisions.authorization.policy import Verdict


class CallFailed(Exception):
    """A tool call failed or was denied; `error` is what every API returns for it."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.error = error


class NeedsPerson(Exception):
    """A tool call must be confirmed by a person first; it was not made."""

    def __init__(self, request: ToolCallRequest, authorization: Authorization) -> None:
        super().__init__(request.tool)
        self.request, self.authorization = request, authorization


class TakenOver(NeedsPerson):
    """A tool call waits until a person ends the takeover of the page; it was not made."""

    def __init__(self, request: ToolCallRequest) -> None:
        super().__init__(request, Authorization(Verdict("confirm", "takeover"), "confirm"))


class NeedsAnswer(Exception):
    """The caller must answer a question before the step continues."""

    def __init__(self, question: str, suggestions: Sequence[str] = ()) -> None:
        super().__init__(question)
        self.question, self.suggestions = question, suggestions
