"""Pages that reach programs of this machine and nothing else, for who develops on it.

As with remote callers' pages every connection is judged when it is made, whatever led to it; here
only a few names for this machine are let through, and no other name is ever resolved.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from runners.network.allowlist import Address
from runners.network.egress import EgressDenied, EgressPolicy

_V4, _V6 = ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")
_ADDRESSES: dict[str, Sequence[Address]] = {"localhost": (_V4, _V6), "127.0.0.1": (_V4,)}


def loopback_addresses(host: str) -> Sequence[Address]:
    """Return the addresses that one of this machine's two names stands for; none for any other."""
    return _ADDRESSES.get(host, ())


@dataclass(frozen=True, slots=True)
class LoopbackOnly(EgressPolicy):
    """The rule: these hosts of `localhost` and `127.0.0.1`, on any port but the closed ones."""

    hosts: tuple[str, ...] = tuple(_ADDRESSES)
    closed_ports: tuple[int, ...] = ()
    requirement: str = "a place on this machine that pages here may reach"

    async def addresses_of(self, host: str) -> Sequence[Address]:
        """Return a host's addresses; raises EgressDenied for every host that is not let through."""
        if host not in self.hosts or not (found := loopback_addresses(host)):
            raise EgressDenied(host)
        return found

    def check(self, host: str, port: int, addresses: Sequence[Address]) -> None:
        """Raise EgressDenied for a closed port."""
        if port in self.closed_ports:
            raise EgressDenied(host)
