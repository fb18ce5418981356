"""Which trace a call is part of (W3C Trace Context): what its caller brought, else a new one.

A door sets what came with the request; whoever calls onward asks here, and tells each one it calls
a span of its own.
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
_brought: ContextVar[str | None] = ContextVar("traceparent", default=None)


def parse_traceparent(text: object) -> str | None:
    """Return a traceparent as version 00 has it, or None where it is not valid: then it is as if
    none had come (Trace Context §3.2).
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
    """Have a request's traceparent, where it is valid, be that of whatever is done within."""
    token = _brought.set(parse_traceparent(traceparent))
    try:
        yield
    finally:
        _brought.reset(token)


def current_traceparent() -> str | None:
    """Return the traceparent that the request brought which is being answered."""
    return _brought.get()


def traceparent_for(name: str) -> str:
    """Return the traceparent of what nobody brought one for, always the same for one name."""
    raw = hashlib.sha256(name.encode()).hexdigest()
    return f"00-{raw[:32]}-{raw[32:48]}-{_SAMPLED}"


def child_span(traceparent: str) -> str:
    """Return the traceparent of one call onward: the same trace, a new span."""
    version, trace, _, flags = traceparent.split("-")
    return f"{version}-{trace}-{_span_id()}-{flags}"


def _span_id() -> str:
    while not int(span := secrets.token_hex(8), 16):
        pass
    return span


def _known_flags(flags: str) -> str:
    return f"{int(flags, 16) & 1:02x}"
