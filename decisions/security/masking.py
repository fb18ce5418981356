"""Taking secret values out of whatever leaves a run: texts, JSON, bytes."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "***"
SHORTEST = (
    4  # shorter values are common words of any page; they are only kept apart, not looked for
)
ANYWHERE = 8  # shorter than this, a value counts only where it stands by itself
_TEXTS = re.compile(r"text/|application/(?:[\w.+-]*json|[\w.+-]*xml|javascript)")


class Masker:
    """Replaces some values, also as addresses, JSON and HTML write them, by `***`."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = {form for value in values if len(value) >= SHORTEST for form in _forms(value)}
        # Longest first, so that no part of a value is left of it.
        parts = [_pattern(form) for form in sorted(forms, key=len, reverse=True)]
        self._pattern = re.compile("|".join(parts)) if parts else None

    def __bool__(self) -> bool:
        return self._pattern is not None

    def text(self, text: str) -> str:
        """Return the text without the values."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def value(self, value: Any) -> Any:
        """Return a JSON value whose texts, names of fields too, are without the values."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def data(self, data: bytes, mime_type: str) -> bytes:
        """Return the bytes of a text without the values; those of anything else as they are."""
        if self._pattern is None or not _TEXTS.match(mime_type):
            return data
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _forms(value: str) -> Iterator[str]:
    yield value
    yield html.escape(value)
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    try:
        yield quote(value, safe="")
        yield quote(value)
        yield quote_plus(value)
    except UnicodeEncodeError:  # half a surrogate pair: no address holds it
        return


def _pattern(form: str) -> str:
    literal = re.escape(form)
    return literal if len(form) >= ANYWHERE else rf"(?<![A-Za-z0-9]){literal}(?![A-Za-z0-9])"
