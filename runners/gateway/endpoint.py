"""Where a runner listens, as a target says it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from runners.network.address import DEFAULT_PORTS, check_address


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


def place_of(endpoint: str, target: str | None = None) -> dict[str, Any]:
    """Return a checked endpoint as an HTTP client takes it: scheme, host, port and target, which is
    the endpoint's own unless another is named.
    """
    place = urlsplit(endpoint)
    own = (place.path or "/") + (f"?{place.query}" if place.query else "")
    return {
        "scheme": place.scheme,
        "host": place.hostname or "",
        "port": place.port or DEFAULT_PORTS[place.scheme],
        "target": target or own,
    }
