"""Recognize this product's own pages, on which agents must not act (S1 §4.3): in its admin, an
agent could confirm what a person has to confirm.

A URL is one of the product's own if it is at one of its ports (CONTINUITY_OWN_PORTS) under a name
or address of this machine, a name of CONTINUITY_ALLOWED_HOSTS or the name in its public URL, or at
that URL (CONTINUITY_PUBLIC_URL). config.settings validates these settings at start-up.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from urllib.parse import SplitResult, urlsplit

from runners.actions.errors import OwnPage
from runners.network.address import TrustLevel, check_address

_PORTS = {"http": 80, "https": 443}


def refuse_own_page(url: str) -> None:
    """Raise OwnPage if a URL is one of the product's own pages."""
    if is_own_page(url):
        raise OwnPage(
            "This is a page of the product itself, on which agents must not act.",
            details={"host": (urlsplit(url).hostname or "")[:253]},
        )


def page_to_open(url: str, trust: TrustLevel) -> str:
    """Return the URL of a page that a caller's tool may open, as a browser opens it: the one check
    before each navigation, of every tool.

    Raises:
        InvalidTarget: Not an http(s) URL as browsers write it.
        AddressNotAllowed: This caller may not read it.
        OwnPage: It is one of the product's own pages.
    """
    address = check_address(url, trust)
    refuse_own_page(address)
    return address


def check_shown_page(url: str, trust: TrustLevel) -> None:
    """Check the URL that a tab shows, after a redirect or a click: before anything of it is
    returned or used.

    Raises:
        OwnPage, AddressNotAllowed: As `page_to_open`.
    """
    refuse_own_page(url)
    if trust != "local" and url.startswith(("http:", "https:")):
        check_address(url, trust)


def is_own_page(url: str) -> bool:
    """Return whether a URL, as a browser writes it, is one of the product's own pages."""
    parts = urlsplit(url.removeprefix("blob:").removeprefix("view-source:"))
    if parts.scheme not in _PORTS or not parts.hostname:
        return False
    host, port = origin = _origin(parts)
    public = os.environ.get("CONTINUITY_PUBLIC_URL", "")
    if public and origin == _origin(urlsplit(public)):
        return True
    return port in _own_ports() and _is_this_machine(host)


def own_origins() -> list[str]:
    """Return the origins of the product's own pages that are known by name: for a browser on
    another machine, which cannot use `is_own_page`.
    """
    names = ["127.0.0.1", "localhost", "[::1]"]
    allowed = os.environ.get("CONTINUITY_ALLOWED_HOSTS", "").split(",")
    names += [name.strip().lower() for name in allowed if name.strip().strip("[]")]
    exact = [name for name in dict.fromkeys(names) if name[:1] not in (".", "*")]
    origins = [
        _text_of(scheme, name, port)
        for port in sorted(_own_ports())
        for scheme in _PORTS
        for name in exact
    ]
    public = urlsplit(os.environ.get("CONTINUITY_PUBLIC_URL", ""))
    if public.hostname:
        origins.append(f"{public.scheme}://{public.netloc.rpartition('@')[2]}")
    return list(dict.fromkeys(origins))


def _text_of(scheme: str, name: str, port: int) -> str:
    return f"{scheme}://{name}" if port == _PORTS[scheme] else f"{scheme}://{name}:{port}"


def _origin(parts: SplitResult) -> tuple[str, int | None]:
    return (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme)


def _own_ports() -> set[int]:
    ports = os.environ.get("CONTINUITY_OWN_PORTS", "8000").split(",")
    return {int(port) for port in ports if port.strip()}


def _is_this_machine(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost") or host == socket.gethostname().lower():
        return True
    allowed = os.environ.get("CONTINUITY_ALLOWED_HOSTS", "").split(",")
    names = [name.strip().strip("[]").lower() for name in allowed]
    if any(host in (name, name[1:]) or host.endswith(name) for name in names if name[:1] == "."):
        return True
    if host in (*names, _origin(urlsplit(os.environ.get("CONTINUITY_PUBLIC_URL", "")))[0]):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    effective = getattr(address, "ipv4_mapped", None) or address
    return effective.is_loopback or effective.is_unspecified or _can_bind(str(effective))


def _can_bind(address: str) -> bool:
    """Return whether an address is one of this machine: only those can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
