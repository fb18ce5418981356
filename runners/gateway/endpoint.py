"""Check the endpoint of a runner.

Its address is public, allowed by CONTINUITY_EGRESS_ALLOW, or opened for this runner alone: an
address and port on loopback that an operator named on the command line of this machine.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from runners.network.address import DEFAULT_PORTS, check_address


def checked_endpoint(text: str, opened: str = "") -> str:
    """Check the address of a runner and return it in normal form.

    The addresses that its host name resolves to are checked when a connection is made.

    Args:
        opened: the address that is open for this runner, as `loopback_address` returns it.

    Raises:
        InvalidTarget: It is no http(s) address, or contains a user name or a fragment.
        AddressNotAllowed: Its host is neither public nor allowed nor opened.
    """
    url = text.partition("#")[0]
    return check_address(url, "local" if used_opening(url, opened) else "remote")


def used_opening(endpoint: str, opened: str) -> str:
    """Return the opened address if it is the endpoint's; else empty."""
    return opened if opened and loopback_address(endpoint) == opened else ""


def loopback_address(endpoint: str) -> str:
    """Return the address and port of an endpoint on loopback, as CONTINUITY_EGRESS_ALLOW has them;
    empty for any other, also for a name such as `localhost`.

    Raises:
        InvalidTarget: It is no http(s) address.
    """
    parts = urlsplit(check_address(endpoint.partition("#")[0], "local"))
    try:
        address = ipaddress.ip_address(parts.hostname or "")
    except ValueError:
        return ""
    host = f"[{address}]" if address.version == 6 else str(address)
    return f"{host}:{parts.port or DEFAULT_PORTS[parts.scheme]}" if address.is_loopback else ""
