"""Which web pages may call: those of this server, and those of CONTINUITY_TRUSTED_ORIGINS."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.utils.http import is_same_domain


def is_allowed_origin(origin: str, host: str) -> bool:
    """Return whether pages of an origin may call this server.

    Args:
        origin: the request's Origin header; clients that are not pages send none.
        host: the request's host, with its port.
    """
    try:
        parts = urlsplit(origin.lower())
    except ValueError:
        return False
    if not parts.netloc or parts.path or parts.query or parts.fragment:
        return False
    if parts.scheme in ("http", "https") and parts.netloc == host.lower():
        return True
    trusted = [urlsplit(name.lower()) for name in settings.CSRF_TRUSTED_ORIGINS]
    return any(
        parts.scheme == name.scheme and is_same_domain(parts.netloc, name.netloc.lstrip("*"))
        for name in trusted
    )
