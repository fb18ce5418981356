"""Formatting of times, durations, ids, sizes and JSON as plain text; templates escape it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from decisions.foundation.infra.clock import now_ms
from decisions.foundation.security.logs import redact

CUT = "…"
_AGO = (
    (86_400, gettext_noop("%s d ago"), gettext_noop("in %s d")),
    (3600, gettext_noop("%s h ago"), gettext_noop("in %s h")),
    (60, gettext_noop("%s min ago"), gettext_noop("in %s min")),
    (1, gettext_noop("%s s ago"), gettext_noop("in %s s")),
)


def ago(at: datetime | None) -> str:
    """Format a time relative to now in one unit: `5 s ago`, `3 min ago`, `in 2 h`."""
    if at is None:
        return _("never")
    seconds = (datetime.now(UTC) - at).total_seconds()
    span = int(abs(seconds))
    if span < 1:
        return _("just now")
    size, past, future = next(one for one in _AGO if span >= one[0])
    return _(past if seconds > 0 else future) % (span // size)


def until(milliseconds: int) -> str:
    """Format the time until a Unix time in milliseconds: `in 29 min 40 s`."""
    return _("in %(time)s") % {"time": duration(max(0, milliseconds - now_ms()))}


def duration(milliseconds: float | None) -> str:
    """Format a duration: `840 ms`, `8.3 s`, `2 min 05 s`, `3 h 07 min`."""
    if milliseconds is None:
        return "–"
    if milliseconds < 999.5:
        return _("%(ms)s ms") % {"ms": f"{milliseconds:.0f}"}
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return _("%(s)s s") % {"s": f"{seconds:.1f}"}
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return _("%(min)s min %(s)s s") % {"min": minutes, "s": f"{rest:02d}"}
    hours, minutes = divmod(minutes, 60)
    return _("%(h)s h %(min)s min") % {"h": hours, "min": f"{minutes:02d}"}


def size(count: int) -> str:
    """Format a number of bytes: `812 B`, `64.0 KiB`, `3.1 MiB`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def short_id(text: str) -> str:
    """Shorten an id to its prefix and last eight characters: ids of one second differ there."""
    prefix, mark, rest = text.partition("_")
    return f"{prefix}_{CUT}{rest[-8:]}" if mark and len(rest) > 12 else text


def shorten(text: str, length: int) -> str:
    """Return the text on one line, truncated to `length` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + CUT


def pretty_json(value: Any, *, limit: int = 16_384, items: int = 50) -> str:
    """Format JSON for reading: secrets redacted, long lists and strings truncated.

    Args:
        limit: the maximum number of characters.
        items: the maximum number of items of a list.
    """
    text = json.dumps(_abridged(value, items), indent=2, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}\n{CUT}"


def _abridged(value: Any, items: int) -> Any:
    if isinstance(value, str):
        safe = redact(value)
        return safe if len(safe) <= 2000 else safe[:2000] + CUT
    if isinstance(value, dict):
        return {key: _abridged(item, items) for key, item in value.items()}
    if isinstance(value, list):
        first = [_abridged(item, items) for item in value[:items]]
        if len(value) <= items:
            return first
        return [*first, _("… and %(number)s more") % {"number": len(value) - items}]
    return value


def one_line(value: Any, length: int = 160) -> str:
    """Format a small JSON object as `name value · name value`, truncated to `length` characters."""
    if not isinstance(value, dict):
        return shorten(json.dumps(value, ensure_ascii=False), length)
    parts = [
        f"{key} {_brief(item)}" for key, item in value.items() if item not in (None, "", [], {})
    ]
    return shorten(redact(" · ".join(parts)), length)


def _brief(item: Any) -> str:
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
