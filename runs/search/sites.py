"""The site of a failure: the host of the page that a run failed on, or is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

SITE_MAX = 100  # characters
_HOST = re.compile(
    r"(?:(?:[a-z0-9-]+\.)+[a-z][a-z0-9-]*|localhost|\d+(?:\.\d+){3})(?::\d+)?(?=[/ ,]|$)",
    re.IGNORECASE,
)
_URL = re.compile(r"https?://[^\s\"'<>]+", re.IGNORECASE)


def site_of_error(error: Mapping[str, Any] | None) -> str:
    """Return the host, with its port, that a run's error is about: that of the page in its details,
    else of most of the pages that failed, else of the step that failed; empty if there is none.
    """
    if not error:
        return ""
    details = error.get("details")
    details = details if isinstance(details, Mapping) else {}
    if site := _host(details.get("url")):
        return site
    items = details.get("items")
    items = items if isinstance(items, list) else []
    hosts = Counter(_host(item.get("url")) for item in items if isinstance(item, Mapping))
    del hosts[""]
    if hosts:
        return hosts.most_common(1)[0][0]
    step = _URL.search(str(error.get("name") or ""))
    return _host(step[0]) if step else ""


def site_of_subject(subject: str) -> str:
    """Return the host that a run's subject begins with, as in `shop.example/orders`; else empty."""
    found = _HOST.match(subject)
    return found[0].lower()[:SITE_MAX] if found else ""


def _host(url: object) -> str:
    try:
        parts = urlsplit(url.strip()) if isinstance(url, str) else urlsplit("")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if parts.scheme.lower() not in ("http", "https"):
        return ""
    return (f"{host}:{port}" if port and host else host)[:SITE_MAX]
