"""Credentials in the query or fragment of a URL, such as `?access_token=…`.

Who gives a run a URL chooses the names and values of its parameters. So a value is masked in URLs
by the name of its parameter, and elsewhere only if it looks random: otherwise a URL could hide
names and words of the run's own result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_plus

ECHO_MIN_LENGTH = 12  # of a value that is masked outside of URLs too
_NAME = re.compile(
    r"(?i)(?:.*(?:token|passw(?:or)?d|secret|api[_-]?key|signature|credential)|auth|sig|jwt)"
    r"(?:\[\w*\])?"
)
_PARAMETER = re.compile(r"[?&#;]([^?&#;=\s\"<>]{1,200})=")
_VALUE = re.compile(r"[^&#\s\"<>]*")


def mask_url_credentials(text: str) -> str:
    """Return a text with the credentials in its URLs replaced by ***."""
    parts, end = [], 0
    for value in _credentials(text):
        parts += [text[end : value.start()], "***"]
        end = value.end()
    return "".join([*parts, text[end:]])


def credentials_in_urls(value: Any) -> set[str]:
    """Return the credentials in the URLs of a JSON value, as they are written and decoded; a text
    that is not a URL as a whole has none.
    """
    found = {match[0] for url in _urls(value) for match in _credentials(url)}
    return found | {unquote_plus(text) for text in found}


def looks_random(value: str) -> bool:
    """Tell whether a value is long and has letters and digits, as generated credentials do."""
    has_both = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return len(value) >= ECHO_MIN_LENGTH and has_both


def _credentials(text: str) -> Iterator[re.Match[str]]:
    """Yield the values of the parameters that are named as credentials; none is empty."""
    end = 0
    for parameter in _PARAMETER.finditer(text):
        is_named_so = _NAME.fullmatch(unquote_plus(parameter[1]).strip())
        value = _VALUE.match(text, parameter.end())
        if parameter.start() >= end and is_named_so and value and value[0]:
            yield value
            end = value.end()


def _urls(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value.strip()[:8].lower().startswith(("http://", "https://")):
            yield value.strip()
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _urls(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _urls(item)
