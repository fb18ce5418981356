"""Masking of known secret values in texts, JSON and bytes that leave a run."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "***"
MIN_LENGTH = 4  # shorter values are too common in ordinary text to be masked
ANYWHERE_LENGTH = 8  # shorter values are masked only as whole words
_TEXTS = re.compile(r"text/|application/(?:[\w.+-]*json|[\w.+-]*xml|javascript)")


class Masker:
    """Replaces secret values by `***`, also in their URL, JSON and HTML encodings.

    Args:
        values: the secret values.
        names: the names of values that stand for them where a person decides on a call.
    """

    def __init__(self, values: Iterable[str] = (), names: Mapping[str, str] | None = None) -> None:
        known = {value: (names or {}).get(value, "") for value in values}
        forms = {
            form: name
            for value, name in known.items()
            if len(value) >= MIN_LENGTH
            for form in _forms(value)
        }
        self._names = forms
        # Longest first, so that a value that contains another one is masked completely.
        parts = [_pattern(form) for form in sorted(forms, key=len, reverse=True)]
        self._pattern = re.compile("|".join(parts)) if parts else None

    def __bool__(self) -> bool:
        return self._pattern is not None

    def text(self, text: str) -> str:
        """Return the text with the values masked."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def value(self, value: Any) -> Any:
        """Return a JSON value with the values masked in its texts and field names."""
        return value if self._pattern is None else map_texts(value, self.text)

    def named(self, value: Any, show: Callable[[str], str]) -> Any:
        """Return a JSON value with `show(name)` in place of each secret value, for a person who
        decides on it.
        """
        pattern = self._pattern
        if pattern is None:
            return value
        return map_texts(
            value, lambda text: pattern.sub(lambda found: show(self._names[found[0]]), text)
        )

    def data(self, data: bytes, mime_type: str) -> bytes:
        """Return bytes with the values masked if the media type is a text; else unchanged."""
        if self._pattern is None or not _TEXTS.match(mime_type):
            return data
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with a function applied to its texts and field names. Fields whose names
    become equal are all kept.
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        changed: dict[Any, Any] = {}
        for key, item in value.items():
            name = map_texts(key, change)
            while name in changed:
                name = f"{name} (again)"
            changed[name] = map_texts(item, change)
        return changed
    if isinstance(value, list | tuple):
        return [map_texts(item, change) for item in value]
    return value


def _forms(value: str) -> Iterator[str]:
    yield value
    yield html.escape(value)
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    try:
        yield quote(value, safe="")
        yield quote(value)
        yield quote_plus(value)
    except UnicodeEncodeError:  # a lone surrogate: it cannot occur in a URL
        return


def _pattern(form: str) -> str:
    literal = re.escape(form)
    return literal if len(form) >= ANYWHERE_LENGTH else rf"(?<![A-Za-z0-9]){literal}(?![A-Za-z0-9])"
