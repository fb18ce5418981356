"""Where a runner listens, as a target says it."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpcore2

from runners.browser.address import DEFAULT_PORTS, check_address

HEALTH = "/health"


def checked_endpoint(text: str) -> str:
    """Return the address of a runner as it is connected to.

    Whether the addresses that its host's name stands for are open is asked when it is connected to.

    Raises:
        InvalidTarget: It is no http(s) address, or holds a user name or a fragment's sign.
        AddressNotAllowed: Its host is not public, nor opened by CONTINUITY_EGRESS_ALLOW.
    """
    return check_address(text.partition("#")[0], "remote")


def host_of(endpoint: str) -> str:
    """Return the Host header of calls to an endpoint."""
    return urlsplit(endpoint).netloc


def url_of(endpoint: str) -> httpcore2.URL:
    """Return a checked endpoint as it is called."""
    place = urlsplit(endpoint)
    target = (place.path or "/") + (f"?{place.query}" if place.query else "")
    return _url(endpoint, target)


def health_of(endpoint: str) -> httpcore2.URL:
    """Return where the runner of a checked endpoint tells of its health."""
    return _url(endpoint, HEALTH)


def _url(endpoint: str, target: str) -> httpcore2.URL:
    place = urlsplit(endpoint)
    return httpcore2.URL(
        scheme=place.scheme, host=place.hostname or "",
        port=place.port or DEFAULT_PORTS[place.scheme], target=target,
    )  # fmt: skip
