"""Endpoints of runners: check an address, and split it for the HTTP client."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from runners.network.address import DEFAULT_PORTS, check_address


def checked_endpoint(text: str) -> str:
    """Check the address of a runner and return it in normal form.

    The addresses that its host name resolves to are checked when a connection is made.

    Raises:
        InvalidTarget: It is no http(s) address, or contains a user name or a fragment.
        AddressNotAllowed: Its host is neither public nor allowed by CONTINUITY_EGRESS_ALLOW.
    """
    return check_address(text.partition("#")[0], "remote")


def host_of(endpoint: str) -> str:
    """Return the Host header for an endpoint."""
    return urlsplit(endpoint).netloc


def url_parts(endpoint: str, target: str | None = None) -> dict[str, Any]:
    """Return scheme, host, port and target of a checked endpoint; `target` replaces its path."""
    parts = urlsplit(endpoint)
    own = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return {
        "scheme": parts.scheme,
        "host": parts.hostname or "",
        "port": parts.port or DEFAULT_PORTS[parts.scheme],
        "target": target or own,
    }
