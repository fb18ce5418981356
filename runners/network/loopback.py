"""An egress policy for previews: pages may connect to programs on this machine and nothing else.

As for remote callers, every connection is checked when it is opened. Only two names of this machine
are permitted, and no other name is ever resolved.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from runners.network.allowlist import Address
from runners.network.egress import EgressDenied, EgressPolicy

_V4, _V6 = ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")
_ADDRESSES: dict[str, Sequence[Address]] = {"localhost": (_V4, _V6), "127.0.0.1": (_V4,)}


@dataclass(frozen=True, slots=True)
class LoopbackOnly(EgressPolicy):
    """Permits the given hosts of `localhost` and `127.0.0.1`, except on closed ports."""

    hosts: tuple[str, ...] = tuple(_ADDRESSES)
    closed_ports: tuple[int, ...] = ()
    requirement: str = "a host and port of this machine that a preview may reach"

    async def addresses_of(self, host: str) -> Sequence[Address]:
        """Return a host's addresses; raise EgressDenied for a host that is not permitted."""
        if host not in self.hosts or host not in _ADDRESSES:
            raise EgressDenied(host)
        return _ADDRESSES[host]

    def check(self, host: str, port: int, addresses: Sequence[Address]) -> None:
        """Raise EgressDenied for a closed port."""
        if port in self.closed_ports:
            raise EgressDenied(host)
