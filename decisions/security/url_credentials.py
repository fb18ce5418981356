"""Credentials in the query of a URL, such as `?access_token=…`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_plus

MIN_LENGTH = 8  # a shorter value is too common in ordinary text
_NAME = r"(?:[\w.-]*(?:token|passw(?:or)?d|secret|api[_-]?key|signature|credential)|auth|sig|jwt)"
_IN_QUERY = re.compile(rf"(?i)([?&#;]{_NAME}=)([^&#;\s\"'<>]+)")


def mask_url_credentials(text: str) -> str:
    """Return a text with the credentials in the queries of its URLs replaced by ***."""
    return _IN_QUERY.sub(r"\1***", text)


def credentials_in_urls(value: Any) -> set[str]:
    """Return the credentials in the URLs of a JSON value, as they are written and decoded; a text
    that is not a URL as a whole has none.
    """
    found = {match[2] for url in _urls(value) for match in _IN_QUERY.finditer(url)}
    found |= {unquote_plus(text) for text in found}
    return {text for text in found if len(text) >= MIN_LENGTH}


def _urls(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value[:8].lower().startswith(("http://", "https://")):
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _urls(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _urls(item)
