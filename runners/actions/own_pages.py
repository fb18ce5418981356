"""Which pages are this product's own, where no agent acts (S1 §4.3): its admin could confirm what
people are asked for.

Known by where the product listens on this machine (CONTINUITY_OWN_PORTS; any name or address of the
machine, and the names in CONTINUITY_ALLOWED_HOSTS) and by its address for people
(CONTINUITY_PUBLIC_URL); config.settings checks these at the start.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from urllib.parse import SplitResult, urlsplit

from runners.actions.errors import OwnPage

_PORTS = {"http": 80, "https": 443}


def refuse_own_page(url: str) -> None:
    """Make sure that an address is not one of the product's own pages.

    Raises:
        OwnPage: It is.
    """
    if is_own_page(url):
        raise OwnPage(
            "This is a page of the product itself, on which no agent acts.",
            details={"host": (urlsplit(url).hostname or "")[:253]},
        )


def is_own_page(url: str) -> bool:
    """Tell whether an address, as a browser writes it, is one of the product's own pages."""
    parts = urlsplit(url.removeprefix("blob:").removeprefix("view-source:"))
    if parts.scheme not in _PORTS or not parts.hostname:
        return False
    host, port = place = _place(parts)
    public = os.environ.get("CONTINUITY_PUBLIC_URL", "")
    if public and place == _place(urlsplit(public)):
        return True
    return port in _own_ports() and _is_this_machine(host)


def _place(parts: SplitResult) -> tuple[str, int | None]:
    return (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme)


def _own_ports() -> set[int]:
    named = os.environ.get("CONTINUITY_OWN_PORTS", "8000").split(",")
    return {int(port) for port in named if port.strip()}


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost") or host == socket.gethostname().lower():
        return True
    allowed = os.environ.get("CONTINUITY_ALLOWED_HOSTS", "").split(",")
    names = [name.strip().strip("[]").lower() for name in allowed]
    if any(host in (name, name[1:]) or host.endswith(name) for name in names if name[:1] == "."):
        return True
    if host in names:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    meant = getattr(address, "ipv4_mapped", None) or address
    return meant.is_loopback or meant.is_unspecified or _is_bound_here(str(meant))


def _is_bound_here(address: str) -> bool:
    """Tell whether an address is one of this machine's: no other can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            trial.bind((address, 0))
    except OSError:
        return False
    return True
