"""Exceptions that end a step's work early: a failed call, or one that waits for a person.

CallFailed      a tool call failed or was denied
NeedsPerson     a tool call that a person has to confirm first
└── TakenOver   a tool call that waits until a person gives the page back
NeedsAnswer     a question that the caller has to answer first
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from decisions.authorization.authorize import Authorization, ToolCallRequest
from decisions.authorization.policy import Verdict


class CallFailed(Exception):
    """A tool call that failed or was denied; `error` has the one shape of every door."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.error = error


class NeedsPerson(Exception):
    """A tool call that a person has to confirm first; nothing of it was done."""

    def __init__(self, use: ToolCallRequest, ruling: Authorization) -> None:
        super().__init__(use.tool)
        self.use, self.ruling = use, ruling


class TakenOver(NeedsPerson):
    """A tool call that waits until a person gives back the page; nothing of it was done."""

    def __init__(self, use: ToolCallRequest) -> None:
        super().__init__(use, Authorization(Verdict("confirm", "takeover"), "confirm"))


class NeedsAnswer(Exception):
    """A question that whoever handed the run in has to answer before the step goes on."""

    def __init__(self, question: str, suggestions: Sequence[str] = ()) -> None:
        super().__init__(question)
        self.question, self.suggestions = question, suggestions
