"""The places that the operator opened to remote callers besides the public ones:
CONTINUITY_EGRESS_ALLOW.

An entry is an address or a network, with a port or for all ports that browsers open:
`10.20.0.0/16`, `192.168.1.5:8443`, `fd00:1::/64`, `[fd00:1::5]:8443`.
"""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_PORTED = re.compile(r"(?:\[(?P<v6>[^]]*)\]|(?P<v4>[^:]*)):(?P<port>[0-9]{1,5})")
_LOOPBACK = (ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1"))
# Services that hand credentials to whoever asks from a machine of a cloud; some of these addresses
# count as public, and none is ever opened.
_METADATA = [
    ipaddress.ip_network(text)
    for text in (
        "169.254.0.0/16",
        "fe80::/10",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::/32",
        "fd20:ce::254",
    )
]


@dataclass(frozen=True, slots=True)
class AllowedNetwork:
    """A network that is opened, on one port or on all."""

    network: Network
    port: int | None = None

    def __str__(self) -> str:
        alone = self.network.num_addresses == 1
        shown = str(self.network.network_address if alone else self.network)
        if self.port is None:
            return shown
        return f"[{shown}]:{self.port}" if self.network.version == 6 else f"{shown}:{self.port}"

    def covers(self, address: Address, port: int) -> bool:
        """Say whether the address and port are part of it."""
        return address in self.network and self.port in (None, port)

    @property
    def includes_loopback(self) -> bool:
        """Whether every program of this machine is part of it."""
        return self.port is None and any(self.covers(one, 0) for one in _LOOPBACK)


def is_metadata(address: Address) -> bool:
    """Say whether nobody but the machine itself has any business there."""
    return any(address in network for network in _METADATA)


@lru_cache(maxsize=8)
def parse_allowed_networks(text: str) -> tuple[AllowedNetwork, ...]:
    """Return the places that a comma-separated list names.

    Raises:
        ValueError: An entry is no address or network, or a metadata service's; in one sentence.
    """
    return tuple(_parse(entry) for part in text.split(",") if (entry := part.strip()))


def allowed_networks() -> tuple[AllowedNetwork, ...]:
    """Return what CONTINUITY_EGRESS_ALLOW opens; config.settings has checked it at the start."""
    return parse_allowed_networks(os.environ.get("CONTINUITY_EGRESS_ALLOW", ""))


def _parse(entry: str) -> AllowedNetwork:
    ported = _PORTED.fullmatch(entry)
    text = entry if ported is None else ported["v6"] or ported["v4"] or ""
    port = None if ported is None else int(ported["port"])
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        raise ValueError(
            f"{entry[:80]!r} is no address or network; write for example 10.20.0.0/16,"
            " 192.168.1.5:8443, or [fd00:1::5]:8443. Names are judged by their addresses."
        ) from None
    if port is not None and not 0 < port <= 65535:
        raise ValueError(f"{entry[:80]!r} names a port that is not from 1 to 65535.")
    if any(network.version == one.version and network.subnet_of(one) for one in _METADATA):  # type: ignore[arg-type]
        raise ValueError(
            f"{entry[:80]!r} is where clouds hand out credentials; it is never opened."
        )
    return AllowedNetwork(network, port)
