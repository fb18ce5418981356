"""Subject lines of runs: what a run is about, in one line made of its inputs.

Lists, messages and logs show it to anyone who may see the run, so it has no query strings, no user
names or passwords of URLs, and nothing that looks like a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from decisions.foundation.presentation.formatting import CUT, shorten
from decisions.foundation.security.logs import redact
from decisions.foundation.security.url_credentials import looks_random

SUBJECT_MAX = 200  # characters
WORDS_MAX = 120  # of a goal or a query
PATH_MAX = 80
BETWEEN = " · "
_URL = re.compile(r"https?://[^\s\"'<>]+", re.IGNORECASE)
_URL_FIELDS = ("urls", "startUrl", "url")
_TEXT_FIELDS = ("goal", "query", "message", "name", "title")


def subject_line(*parts: str) -> str:
    """Return the parts that are not empty as one subject line."""
    line = BETWEEN.join(part for part in parts if part)
    return shorten(redact(line), SUBJECT_MAX)


def first_words(text: str) -> str:
    """Return the beginning of a text on one line, its URLs as `place_of` writes them."""
    begin = text[: 4 * WORDS_MAX]
    return shorten(redact(_URL.sub(lambda found: place_of(found[0]), begin)), WORDS_MAX)


def place_of(url: str) -> str:
    """Return host and path of a URL: `docs.example.com/guide`; the text's start if it is no URL."""
    host, path = _split(url)
    if not host:
        return shorten(url.partition("?")[0].partition("#")[0].rpartition("@")[2], PATH_MAX)
    segments = [_segment(part) for part in path.strip("/").split("/")]
    shown = "/".join(segments)
    return host + (f"/{shorten(shown, PATH_MAX)}" if shown else "")


def host_of(url: str) -> str:
    """Return the host of a URL, with its port; empty if it is no URL."""
    return _split(url)[0]


def pages_of(urls: Sequence[str]) -> str:
    """Return what a list of URLs is about: the one page, or the hosts and the number of pages."""
    if len(urls) == 1:
        return place_of(urls[0])
    hosts = list(dict.fromkeys(host_of(url) or place_of(url) for url in urls))
    named = ", ".join(hosts[:2]) + (f" +{len(hosts) - 2}" if len(hosts) > 2 else "")
    return f"{named}{BETWEEN}{len(urls)} pages" if urls else ""


def default_subject(name: str, inputs: Mapping[str, Any]) -> str:
    """Return the subject of a template without one of its own: the addresses or the text among its
    inputs, else the template's name.
    """
    for field in _URL_FIELDS:
        value = inputs.get(field)
        urls = [value] if isinstance(value, str) else value
        if isinstance(urls, list) and urls and all(isinstance(url, str) for url in urls):
            return pages_of(urls)
    texts = (inputs.get(field) for field in _TEXT_FIELDS)
    text = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    return first_words(text) if text else name


def _split(url: str) -> tuple[str, str]:
    """Return host and path of an http(s) URL; both are empty for another text."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "", ""
    if parts.scheme.lower() not in ("http", "https", "file"):
        return "", ""
    if parts.scheme.lower() == "file":
        return "file:", parts.path
    return (f"{host}:{port}" if port and host else host), parts.path


def _segment(text: str) -> str:
    """Return a part of a path as people read it; one that looks like a token is left out."""
    plain = text.partition(";")[0]
    decoded = unquote(plain, errors="replace")
    shown = decoded if decoded.isprintable() and "\ufffd" not in decoded else plain
    return CUT if looks_random(shown) and not _is_readable(shown) else shown


def _is_readable(segment: str) -> bool:
    """Return whether a part of a path consists of words, dates and short numbers."""
    return all(
        not looks_random(word) and len(word) < 20 for word in re.split(r"[-_.~ ]", segment) if word
    )
