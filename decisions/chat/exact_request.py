"""The exact texts of a request, for the person who confirms it; all else in chat is redacted.

While a request waits for missing slots, its texts are stored encrypted with the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from decisions.chat.analysis.intake import answers_in
from decisions.models import Conversation
from decisions.security.keys import mac, seal, unseal
from decisions.security.logs import redact


@dataclass(frozen=True, slots=True)
class ExactRequest:
    """A request with the answers to questions about it, and its slots, as the caller sent them."""

    message: str
    answers: tuple[str, ...] = ()
    slots: Mapping[str, str] = field(default_factory=dict)

    def as_arguments(self) -> dict[str, Any]:
        """Return what the person sees."""
        return asdict(self)

    def digest(self) -> str:
        """Return the keyed digest that a confirm token is bound to."""
        return mac("chat request", json.dumps(asdict(self), sort_keys=True).encode())

    def sealed(self) -> bytes:
        """Return the texts encrypted, to be stored with the conversation."""
        return seal(json.dumps(asdict(self)).encode())


def exact_request(call: Mapping[str, Any]) -> ExactRequest:
    """Return the request of a message that begins one."""
    return ExactRequest(call["message"], (), _given(call))


def answered_request(row: Conversation, call: Mapping[str, Any]) -> ExactRequest | None:
    """Return the pending request of a conversation with the message as an answer.

    None if its exact texts are not stored; then nobody can confirm it without its token.
    """
    if row.sealed_request is None:
        return None
    try:
        stored = json.loads(unseal(bytes(row.sealed_request)))
    except ValueError:
        return None
    if redact(stored["message"]) != row.request:
        return None
    message = call["message"]
    slots = {**stored["slots"], **answers_in(message, row.asked), **_given(call)}
    return ExactRequest(stored["message"], (*stored["answers"], message), slots)


def _given(call: Mapping[str, Any]) -> dict[str, str]:
    return {slot: str(value) for slot, value in call.get("slots", {}).items()}
