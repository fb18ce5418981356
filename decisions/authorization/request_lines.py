"""The line of a request: what a person is to confirm, the same in every list and message.

It has every value of the call, secrets masked, every character visible. Of a long text it has the
beginning, the end, and the part in which it differs from the other requests of the list. Where
something was cut or masked, it ends with a sign of the whole call, which no two calls share.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from django.db.models import QuerySet

from decisions.authorization.sealed_arguments import leaves
from decisions.foundation.presentation.visible_text import visible
from decisions.foundation.security.masking import MASK
from decisions.models import ConfirmationStatus, Decision

WHOLE = 200  # characters of a value that is not cut
HEAD, DIFFERENCE, TAIL = 60, 100, 40  # characters of a longer one
BEFORE_DIFFERENCE = 20
VALUES = 40
COMPARED = 100  # waiting requests
# What a person looks for.
_FIRST = ("element", "submits", "sent", "toElement", "link", "page", "frame")


def request_line(decision: Decision) -> str:
    """Return the line of one request, as the list of all that wait has it."""
    return request_lines([decision])[decision.pk]


def request_lines(decisions: Iterable[Decision]) -> dict[int, str]:
    """Return the lines of requests, by decision: where they have something long, as they differ
    from each other and from those of the same tool that wait; one query then.
    """
    listed = {decision.pk: (decision, _values(decision)) for decision in decisions}
    long = {decision.tool for decision, values in listed.values() if _is_long(values)}
    others = [(one, _values(one)) for one in _waiting(long)] if long else []
    shared = _shared_lengths([*listed.values(), *others])
    return {
        pk: _line(decision, values, shared.get(decision.tool, {}))
        for pk, (decision, values) in listed.items()
    }


def _waiting(tools: Collection[str]) -> QuerySet[Decision]:
    waiting = Decision.objects.filter(
        tool__in=tools,
        confirmation__status=ConfirmationStatus.WAITING,
        confirmation__expires_at__gt=datetime.now(UTC),
    )
    return waiting.only("tool", "arguments", "subject_digest").order_by("-pk")[:COMPARED]


def _is_long(values: Mapping[str, str]) -> bool:
    return any(len(text) > WHOLE for text in values.values())


def _values(decision: Decision) -> dict[str, str]:
    """Return the call's values by name, as lists and records have them."""
    args = decision.arguments if isinstance(decision.arguments, Mapping) else {}
    first = {name: args[name] for name in _FIRST if name in args}
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in leaves(first | dict(args))
        if name
    }


def _shared_lengths(
    listed: Iterable[tuple[Decision, Mapping[str, str]]],
) -> dict[str, dict[str, int]]:
    """Return how far the long values of a tool's calls are the same, by tool and value."""
    texts: dict[str, dict[str, set[str]]] = {}
    for decision, values in listed:
        for name, text in values.items():
            if len(text) > WHOLE:
                texts.setdefault(decision.tool, {}).setdefault(name, set()).add(text)
    return {
        tool: {name: _shared_length(min(found), max(found)) for name, found in names.items()}
        for tool, names in texts.items()
    }


def _shared_length(first: str, last: str) -> int:
    """Return how far two texts are the same, as those between them are; 0 for one text alone."""
    if first == last:
        return 0
    pairs = enumerate(zip(first, last, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(first), len(last)))


def _line(decision: Decision, values: Mapping[str, str], shared: Mapping[str, int]) -> str:
    shown = [f"{name} {_cut(text, shared.get(name, 0))}" for name, text in values.items()]
    is_masked = any(MASK in text for text in values.values())
    is_cut = len(shown) > VALUES or _is_long(values) or is_masked
    sign = [f"#{decision.subject_digest[:8]}"] if is_cut else []
    return visible(" · ".join([*shown[:VALUES], *sign]))


def _cut(text: str, same: int) -> str:
    if len(text) <= WHOLE:
        return text
    start = min(max(HEAD, same - BEFORE_DIFFERENCE), len(text) - DIFFERENCE - TAIL)
    pieces: Sequence[tuple[int, int]] = (
        (0, HEAD),
        (max(HEAD, start), max(HEAD, start) + DIFFERENCE),
        (len(text) - TAIL, len(text)),
    )
    line, end = "", 0
    for begin, until in pieces:
        line += text[max(begin, end) : until] if begin <= end else f" … {text[begin:until]}"
        end = max(end, until)
    return line
