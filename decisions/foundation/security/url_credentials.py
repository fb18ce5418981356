"""Credentials in the query or fragment of a URL, such as `?access_token=…`.

Who gives a run a URL chooses the names and values of its parameters. So a value is masked in URLs
by the name of its parameter, and elsewhere only if it looks random: otherwise a URL could hide
names and words of the run's own result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_plus, urlsplit

_MASK = "***"  # decisions.foundation.security.masking.MASK

ECHO_MIN_LENGTH = 12  # of a value that is masked outside of URLs too
_NAME = re.compile(
    r"(?i)(?:.*(?:token|passw(?:or)?d|secret|api[_-]?key|signature|credential)|auth|sig|jwt)"
    r"(?:\[\w*\])?"
)
_PARAMETER = re.compile(r"[?&#;]([^?&#;=\s\"<>]{1,200})=")
_VALUE = re.compile(r"[^&#\s\"<>]*")
_AFTER = ".,;:!?)]}'`*"  # what may follow a URL in a text
_URL = re.compile(r"(?i)https?://[^\s\"<>]+")


def mask_url_credentials(text: str) -> str:
    """Return a text with the credentials in its URLs replaced by ***."""
    parts, end = [], 0
    for value in _credentials(text):
        parts += [text[end : value.start()], _MASK]
        end = value.end()
    return "".join([*parts, text[end:]])


def credentials_in_urls(value: Any) -> set[str]:
    """Return the credentials in the URLs of a JSON value's texts, as they are written and
    decoded.
    """
    found = {match[0] for url in _urls(value) for match in _credentials(url)}
    return found | {unquote_plus(text) for text in found}


class KnownUrls:
    """Puts the credentials of known URLs back into URLs in which they are masked.

    A model that works with a URL gets it masked and requests it masked. A credential is put back
    where the URL has the origin and the parameter of exactly one known credential.
    """

    def __init__(self, value: Any) -> None:
        self._values: dict[tuple[str, str], set[str]] = {}
        for url in _urls(value):
            for key, found in _by_parameter(url):
                self._values.setdefault(key, set()).add(found[0])

    def restored(self, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments of a call that opens a URL, with the credentials of that URL."""
        url = args.get("url")
        if not self._values or not isinstance(url, str) or _MASK not in url:
            return args
        return {**args, "url": self._restored(url)}

    def _restored(self, url: str) -> str:
        parts, end = [], 0
        for key, found in _by_parameter(url):
            values = self._values.get(key, ())
            if found[0] == _MASK and len(values) == 1:
                parts += [url[end : found.start()], *values]
                end = found.end()
        return "".join([*parts, url[end:]])


def looks_random(value: str) -> bool:
    """Return whether a value is long and has letters and digits, as generated credentials do."""
    has_both = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return len(value) >= ECHO_MIN_LENGTH and has_both


def _credentials(text: str) -> Iterator[re.Match[str]]:
    """Yield the values of the parameters that are named as credentials; none is empty."""
    end = 0
    for parameter in _PARAMETER.finditer(text):
        if parameter.start() < end or not _NAME.fullmatch(unquote_plus(parameter[1]).strip()):
            continue  # also because reading each value to its end would take quadratic time
        value = _VALUE.match(text, parameter.end())
        if value and value[0]:
            yield value
            end = value.end()


def _by_parameter(url: str) -> Iterator[tuple[tuple[str, str], re.Match[str]]]:
    """Yield the credentials of a URL, each with the URL's origin and its parameter."""
    try:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(url)).lower()
    except ValueError:
        return
    for found in _credentials(url):
        name = url[: found.start() - 1]
        yield (origin, re.split(r"[?&#;]", name)[-1]), found


def _urls(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        for found in _URL.finditer(value):
            is_all = len(found[0]) == len(value.strip())
            yield found[0] if is_all else found[0].rstrip(_AFTER)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _urls(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _urls(item)
