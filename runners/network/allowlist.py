"""The networks that the operator allows to remote callers besides public ones.

The setting is CONTINUITY_EGRESS_ALLOW, a comma-separated list. An entry is an address or a network,
with one port or, without a port, for all ports that browsers open:
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
# Cloud metadata services, which return credentials to any program on a cloud machine. Some of these
# addresses count as public; none is ever allowed.
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
    """An allowed network, on one port or (`port` None) on all."""

    network: Network
    port: int | None = None

    def __str__(self) -> str:
        is_single = self.network.num_addresses == 1
        text = str(self.network.network_address if is_single else self.network)
        if self.port is None:
            return text
        return f"[{text}]:{self.port}" if self.network.version == 6 else f"{text}:{self.port}"

    def covers(self, address: Address, port: int) -> bool:
        """Return whether the network includes the address and port."""
        return address in self.network and self.port in (None, port)

    @property
    def includes_loopback(self) -> bool:
        """Whether it includes every port of a loopback address."""
        return self.port is None and any(self.covers(address, 0) for address in _LOOPBACK)


def is_metadata(address: Address) -> bool:
    """Return whether the address belongs to a cloud metadata service or is link-local."""
    return any(address in network for network in _METADATA)


@lru_cache(maxsize=8)
def parse_allowed_networks(text: str) -> tuple[AllowedNetwork, ...]:
    """Return the networks of a comma-separated list.

    Raises:
        ValueError: An entry is not an address or network, or covers a metadata service. The message
            is one sentence.
    """
    return tuple(_parse(entry) for part in text.split(",") if (entry := part.strip()))


def allowed_networks() -> tuple[AllowedNetwork, ...]:
    """Return the networks of CONTINUITY_EGRESS_ALLOW; config.settings validates it at start-up."""
    return parse_allowed_networks(os.environ.get("CONTINUITY_EGRESS_ALLOW", ""))


def _parse(entry: str) -> AllowedNetwork:
    ported = _PORTED.fullmatch(entry)
    text = entry if ported is None else ported["v6"] or ported["v4"] or ""
    port = None if ported is None else int(ported["port"])
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        raise ValueError(
            f"{entry[:80]!r} is not an address or network; write for example 10.20.0.0/16,"
            " 192.168.1.5:8443, or [fd00:1::5]:8443. A name cannot be listed, only its addresses."
        ) from None
    if port is not None and not 0 < port <= 65535:
        raise ValueError(f"{entry[:80]!r} has a port that is not from 1 to 65535.")
    if any(
        network.version == reserved.version and network.subnet_of(reserved)  # type: ignore[arg-type]
        for reserved in _METADATA
    ):
        raise ValueError(
            f"{entry[:80]!r} includes a cloud metadata service; such a network is never allowed."
        )
    return AllowedNetwork(network, port)
