"""Check the endpoint of a runner."""

from __future__ import annotations

from runners.network.address import check_address


def checked_endpoint(text: str) -> str:
    """Check the address of a runner and return it in normal form.

    The addresses that its host name resolves to are checked when a connection is made.

    Raises:
        InvalidTarget: It is no http(s) address, or contains a user name or a fragment.
        AddressNotAllowed: Its host is neither public nor allowed by CONTINUITY_EGRESS_ALLOW.
    """
    return check_address(text.partition("#")[0], "remote")
