"""How values read on the admin's pages: times, durations, ids, sizes, JSON. All of it plain text,
escaped later.
"""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime
from typing import Any

from decisions.infra.clock import now_ms
from decisions.security.logs import redact

_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))
CUT = "…"


def ago(at: datetime | None, now: datetime | None = None) -> str:
    """Return how long ago a moment was, in one unit: `5 s ago`, `3 min ago`, `in 2 h`."""
    if at is None:
        return "never"
    seconds = ((now or datetime.now(UTC)) - at).total_seconds()
    span = int(abs(seconds))
    if span < 1:
        return "just now"
    size, unit = next((size, unit) for size, unit in _UNITS if span >= size)
    text = f"{span // size} {unit}"
    return f"{text} ago" if seconds > 0 else f"in {text}"


def until(milliseconds: int) -> str:
    """Return how long there is until a moment in milliseconds since 1970: `29 min 40 s left`."""
    left = milliseconds - now_ms()
    return f"{duration(left)} left" if left > 0 else "its time is up"


def duration(milliseconds: float | None) -> str:
    """Return a span as a person says it: `840 ms`, `8.3 s`, `2 min 05 s`, `3 h 07 min`."""
    if milliseconds is None:
        return "–"
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def size(count: int) -> str:
    """Return a number of bytes: `812 B`, `64.0 KiB`, `3.1 MiB`."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def short_id(text: str) -> str:
    """Return an id's prefix and its last eight characters: ids made in one second differ at their
    end.
    """
    prefix, mark, rest = text.partition("_")
    return f"{prefix}_{CUT}{rest[-8:]}" if mark and len(rest) > 12 else text


def shorten(text: str, length: int) -> str:
    """Return the text on one line, cut to a length."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + CUT


def pretty_json(value: Any, *, limit: int = 16_384, items: int = 50) -> str:
    """Return JSON for reading: long lists and strings cut, secrets taken out, at most `limit`
    characters.
    """
    text = json.dumps(_for_reading(value, items), indent=2, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}\n{CUT}"


def exact_json(value: Any) -> str:
    """Return JSON for somebody who decides by it: nothing is cut, and what would be invisible or
    turn the direction of the text stands as its escape.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return "".join(one if one == "\n" or _is_seen(one) else _escape(one) for one in text)


def _is_seen(one: str) -> bool:
    return unicodedata.category(one) not in ("Cc", "Cf", "Co", "Cn", "Zl", "Zp")


def _escape(one: str) -> str:
    return json.dumps(one)[1:-1]


def _for_reading(value: Any, items: int) -> Any:
    if isinstance(value, str):
        safe = redact(value)
        return safe if len(safe) <= 2000 else safe[:2000] + CUT
    if isinstance(value, dict):
        return {key: _for_reading(item, items) for key, item in value.items()}
    if isinstance(value, list):
        shown = [_for_reading(item, items) for item in value[:items]]
        return [*shown, f"{CUT} and {len(value) - items} more"] if len(value) > items else shown
    return value


def one_line(value: Any, length: int = 160) -> str:
    """Return a small JSON object as `name value · name value`, cut to a length."""
    if not isinstance(value, dict):
        return shorten(json.dumps(value, ensure_ascii=False), length)
    parts = [
        f"{key} {_brief(item)}" for key, item in value.items() if item not in (None, "", [], {})
    ]
    return shorten(redact(" · ".join(parts)), length)


def _brief(item: Any) -> str:
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
