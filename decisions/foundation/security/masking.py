"""Masking of known secret values in texts, JSON and bytes that leave a run."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from decisions.foundation.security.url_credentials import (
    credentials_in_urls,
    looks_random,
    mask_url_credentials,
)

MASK = "***"
MIN_LENGTH = 4  # shorter values are too common in ordinary text to be masked
ANYWHERE_LENGTH = 8  # shorter values are masked only as whole words
_TEXTS = re.compile(r"text/|application/(?:[\w.+-]*json|[\w.+-]*xml|javascript)")


class Masker:
    """Replaces secret values by `***`, also in their URL, JSON, HTML and Base64 encodings.

    Args:
        values: the secret values.
        url_credentials: credentials in URLs. They are masked in texts, but not in field names:
            within URLs by the names of their parameters, elsewhere if they look random.
    """

    def __init__(self, values: Iterable[str] = (), *, url_credentials: Iterable[str] = ()) -> None:
        self._pattern = _any_of(
            form for value in values if len(value) >= MIN_LENGTH for form in _forms(value)
        )
        credentials = set(url_credentials)
        self._masks_urls = bool(credentials)
        random = (value for value in credentials if looks_random(value))
        self._in_texts = _any_of(form for value in random for form in _forms(value))

    def __bool__(self) -> bool:
        return self._pattern is not None or self._masks_urls

    def text(self, text: str) -> str:
        """Return the text with the values masked."""
        text = self._name(text)
        if self._masks_urls:
            text = mask_url_credentials(text)
        return text if self._in_texts is None else self._in_texts.sub(MASK, text)

    def _name(self, text: str) -> str:
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def value(self, value: Any) -> Any:
        """Return a JSON value with the values masked in its texts and field names."""
        return map_texts(value, self.text, change_name=self._name) if self else value

    def data(self, data: bytes, mime_type: str) -> bytes:
        """Return bytes with the values masked if the media type is a text; else unchanged."""
        if not self or not _TEXTS.match(mime_type):
            return data
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def input_masker(inputs: Any, secrets: Iterable[str] = ()) -> Masker:
    """Return a masker of secrets, and of the credentials in the URLs of a run's inputs."""
    return Masker(secrets, url_credentials=credentials_in_urls(inputs))


class WholeSecrets:
    """Regroups a text that arrives in pieces, so that no piece ends within a secret value: each
    piece is masked on its own, which finds a value only in one piece.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._values, self._held_back = [value for value in values if value], ""

    def add(self, text: str) -> str:
        """Return what can be passed on; a possible beginning of a value is held back."""
        text = self._held_back + text
        ends = (_prefix_at_end(text, value) for value in self._values)
        self._held_back = max(ends, key=len, default="")
        return text[: len(text) - len(self._held_back)]

    def rest(self) -> str:
        """Return what was held back, at the end of the text."""
        rest, self._held_back = self._held_back, ""
        return rest


def _prefix_at_end(text: str, value: str) -> str:
    """Return the longest end of the text that is a proper prefix of the value."""
    if value in text:  # only what follows the whole value counts
        text = text.rpartition(value)[2]
    sizes = range(min(len(text), len(value) - 1), 0, -1)
    return next((text[-size:] for size in sizes if value.startswith(text[-size:])), "")


def map_texts(
    value: Any, change: Callable[[str], str], *, change_name: Callable[[str], str]
) -> Any:
    """Return a JSON value with functions applied to its texts and to its field names. Fields whose
    names become equal are all kept.
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        changed: dict[Any, Any] = {}
        for key, item in value.items():
            name = change_name(key) if isinstance(key, str) else key
            while name in changed:
                name = f"{name} (again)"
            changed[name] = map_texts(item, change, change_name=change_name)
        return changed
    if isinstance(value, list | tuple):
        return [map_texts(item, change, change_name=change_name) for item in value]
    return value


def _any_of(forms: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern of the forms, longest first, so that a value that contains another one is
    masked completely.
    """
    parts = [_pattern(form) for form in sorted(set(forms), key=len, reverse=True)]
    return re.compile("|".join(parts)) if parts else None


def _forms(value: str) -> Iterator[str]:
    yield value
    yield html.escape(value)
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    try:
        yield quote(value, safe="")
        yield quote(value)
        yield quote_plus(value)
        data = value.encode()
    except UnicodeEncodeError:  # a lone surrogate: it cannot occur in a URL
        return
    yield base64.b64encode(data).decode().rstrip("=")
    yield base64.urlsafe_b64encode(data).decode().rstrip("=")


def _pattern(form: str) -> str:
    literal = re.escape(form)
    return literal if len(form) >= ANYWHERE_LENGTH else rf"(?<![A-Za-z0-9]){literal}(?![A-Za-z0-9])"
