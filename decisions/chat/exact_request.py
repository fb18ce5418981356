"""The texts of a request as they were sent: they are decided on, and the person who confirms sees
them. Rows have them encrypted or masked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from decisions.chat.risk.detection import RequestedRisk
from decisions.chat.risk.parsing import normalize
from decisions.foundation.security.keys import mac
from decisions.foundation.security.logs import redact
from decisions.foundation.security.masking import MASK
from decisions.foundation.security.sealed_columns import seal_column, unseal_column
from decisions.models import Conversation

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class RequestTexts:
    """A request with the answers to questions about it, and its slots."""

    message: str
    answers: tuple[str, ...] = ()
    slots: Mapping[str, str] = field(default_factory=dict)

    def answered(self, message: str, slots: Mapping[str, str]) -> RequestTexts:
        """Return the request with another answer and the slots that it adds."""
        return RequestTexts(self.message, (*self.answers, message), {**self.slots, **slots})

    def as_arguments(self) -> dict[str, Any]:
        """Return what the person sees."""
        return asdict(self)

    def digest(self) -> str:
        """Return the keyed digest that a confirm token is bound to."""
        return mac("chat request", json.dumps(asdict(self), sort_keys=True).encode())

    def sealed_for(self, row: Conversation) -> bytes:
        """Return the texts encrypted, to be stored with a conversation."""
        return seal_column(row, "sealed_request", json.dumps(asdict(self)).encode())


@dataclass(frozen=True, slots=True)
class EarlierTexts:
    """What a message may refer to: the last message, and the risk that no person has confirmed."""

    last_message: str
    waiting: RequestedRisk | None

    def seal_into(self, row: Conversation) -> None:
        """Store the texts encrypted in a conversation that has them masked."""
        clause = self.waiting.clause if self.waiting else ""
        texts = [self.last_message, clause, *_masked_texts(row)]
        row.sealed_context = seal_column(row, "sealed_context", json.dumps(texts).encode())


def pending_request(row: Conversation) -> RequestTexts | None:
    """Return the request of a conversation that waits for missing slots, as it was sent.

    None if there is none, or if it cannot be read; then it is not decided on.
    """
    if not row.request or row.sealed_request is None:
        return None
    try:
        stored = json.loads(unseal_column(row, "sealed_request"))
    except ValueError:
        return None
    if redact(stored["message"]) != row.request:
        return None
    return RequestTexts(stored["message"], tuple(stored["answers"]), stored["slots"])


def earlier_texts(row: Conversation) -> EarlierTexts:
    """Return what a message of a conversation may refer to, as it was sent; masked where it cannot
    be read.
    """
    last_message, clause = _masked_texts(row)
    try:
        texts = json.loads(unseal_column(row, "sealed_context"))
    except ValueError:
        texts = []
    if texts[2:] == [last_message, clause]:
        last_message, clause = texts[:2]
    return EarlierTexts(last_message, RequestedRisk(row.risk["rule"], clause) if row.risk else None)


def mask_words(text: str, masked: Iterable[str]) -> str:
    """Return an excerpt of texts with the words masked that their masked forms do not have."""
    known = "\n".join(part for whole in masked for part in (whole, normalize(whole)))
    return _WORD.sub(lambda found: found[0] if found[0] in known else MASK, text)


def _masked_texts(row: Conversation) -> list[str]:
    return [row.last_message, row.risk.get("clause", "")]
