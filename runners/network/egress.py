"""The egress policy: which hosts the pages of remote callers may connect to.

The policy checks resolved addresses, never names, and every connection when it is opened, whatever
opens it: a redirect, a frame, a script, a WebSocket, a worker, a download. The caller connects to
the addresses that were checked, so no name is resolved a second time.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from runners.network.address import is_allowed, is_blocked_name, is_public
from runners.network.allowlist import Address

Resolve = Callable[[str], Awaitable[Sequence[Address]]]
PermitCheck = Callable[[Address, int], bool]

LOOKUP_THREADS = 16
LOOKUP_SECONDS = 10.0
# Ports that browsers refuse to open (Fetch standard, "bad port").
_CLOSED_PORT_NUMBERS = """
    1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113
    115 117 119 123 135 137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548
    554 556 563 587 601 636 989 990 993 995 1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566
    6665 6666 6667 6668 6669 6679 6697 10080
"""
_CLOSED_PORTS = frozenset(map(int, _CLOSED_PORT_NUMBERS.split()))
# A lookup blocks its thread, so lookups have a pool of their own: a slow name server does not delay
# the worker's other threads.
_lookups = ThreadPoolExecutor(LOOKUP_THREADS, thread_name_prefix="egress-lookup")


class EgressDenied(Exception):
    """The policy forbids the connection: the host name, one of its addresses, or the port."""


class NameNotResolved(Exception):
    """The host name has no address."""


async def resolve_name(host: str) -> Sequence[Address]:
    """Return every address that the system's resolver finds for a name; empty if there is none."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            found = await loop.run_in_executor(_lookups, _look_up, host)
    except (OSError, UnicodeError, TimeoutError):
        return ()
    return tuple(ipaddress.ip_address(text) for text in dict.fromkeys(found))


def is_allowed_for_remote(address: Address, port: int) -> bool:
    """Return whether remote callers may connect to this address and port.

    The port must not be a blocked one. The address must be allowed by the operator, or public and
    not one of this machine's own, which would be reached from behind its firewall.
    """
    if port in _CLOSED_PORTS:
        return False
    return is_allowed(address, port) or (is_public(address) and not is_own_address(address))


def is_own_address(address: Address) -> bool:
    """Return whether an interface of this machine has the address; sends nothing."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))  # the kernel chooses a route and sends no packet
            return ipaddress.ip_address(probe.getsockname()[0]) == address
    except OSError:
        return False  # no route; a connection attempt will fail anyway


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """The egress policy for remote callers; the defaults are those of production.

    Attributes:
        resolve: returns the addresses of a name.
        permits: returns whether an address may be connected to on a port.
        forbids_name: returns whether a host name is forbidden, whatever its addresses are.
        requirement: what the policy permits, in words, for messages.
    """

    resolve: Resolve = resolve_name
    permits: PermitCheck = is_allowed_for_remote
    forbids_name: Callable[[str], bool] = is_blocked_name
    requirement: str = "a public address"

    async def addresses_of(self, host: str) -> Sequence[Address]:
        """Return the addresses of a host name or a literal address without brackets.

        Raises:
            EgressDenied: The name is forbidden.
            NameNotResolved: The name has no address.
        """
        try:
            return (ipaddress.ip_address(host),)
        except ValueError:
            pass
        if self.forbids_name(host):
            raise EgressDenied(host)
        found = await self.resolve(host)
        if not found:
            raise NameNotResolved(host)
        return found

    def check(self, host: str, port: int, addresses: Sequence[Address]) -> None:
        """Raise EgressDenied unless every address of the host may be connected to on the port."""
        if not all(self.permits(address, port) for address in addresses):
            raise EgressDenied(host)


def _look_up(host: str) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]
