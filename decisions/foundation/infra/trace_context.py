"""W3C Trace Context of a call: the traceparent of its request, else a new one.

Each transport sets the request's traceparent; outgoing calls read it here and send a new span id
each.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = "01"
_current: ContextVar[str | None] = ContextVar("traceparent", default=None)


def parse_traceparent(text: object) -> str | None:
    """Return a valid traceparent in version 00; None for an invalid one, which is to be ignored
    (Trace Context §3.2).
    """
    found = _TRACEPARENT.fullmatch(text) if isinstance(text, str) and len(text) <= 512 else None
    if found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not int(trace, 16) or not int(span, 16):
        return None
    return f"00-{trace}-{span}-{flags if version == '00' else _known_flags(flags)}"


@contextmanager
def use_traceparent(traceparent: object) -> Iterator[None]:
    """Set the request's traceparent, if it is valid, for the length of a block."""
    token = _current.set(parse_traceparent(traceparent))
    try:
        yield
    finally:
        _current.reset(token)


def current_traceparent() -> str | None:
    """Return the traceparent of the current request, or None."""
    return _current.get()


def traceparent_for(name: str) -> str:
    """Return the traceparent derived from an id, for runs and calls whose request had none."""
    raw = hashlib.sha256(name.encode()).hexdigest()
    return f"00-{raw[:32]}-{raw[32:48]}-{_SAMPLED}"


def child_span(traceparent: str) -> str:
    """Return the traceparent of an outgoing call: the same trace, a new span id."""
    version, trace, _, flags = traceparent.split("-")
    return f"{version}-{trace}-{_span_id()}-{flags}"


def _span_id() -> str:
    while not int(span := secrets.token_hex(8), 16):
        pass
    return span


def _known_flags(flags: str) -> str:
    return f"{int(flags, 16) & 1:02x}"
