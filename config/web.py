"""Settings of the web server that follow from its public URL and the proxies in front of it."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

from django.core.exceptions import ImproperlyConfigured
from environ import Env

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_MAPPED_BITS = 96  # ::ffff:0:0/96 has the IPv4 addresses, as a server on "::" sees them


def public_url(env: Env, name: str) -> SplitResult:
    """Return the URL in an environment variable; an empty one if it is not set.

    Raises:
        ImproperlyConfigured: It is not an http or https URL with a host name.
    """
    text: str = env.str(name, "").strip().rstrip("/")
    try:
        url = urlsplit(text)
        is_valid = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_valid = False
    if text and (not is_valid or url.username or url.query or url.fragment):
        raise ImproperlyConfigured(
            f"{name} must be a URL such as https://continuity.example, not {text[:80]!r}."
        )
    return urlsplit(text)


def origins(env: Env, name: str) -> tuple[str, ...]:
    """Return the origins in an environment variable, separated by commas, as browsers send them.

    Raises:
        ImproperlyConfigured: An entry is not scheme and host, such as https://app.example.
    """
    entries = [entry.strip() for entry in env.str(name, "").split(",") if entry.strip()]
    return tuple(_origin(name, entry) for entry in entries)


def _origin(name: str, entry: str) -> str:
    try:
        url = urlsplit(entry)
        is_valid = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_valid = False
    if (
        not is_valid
        or {"*", "@"} & set(entry)
        or entry.lower() != f"{url.scheme}://{url.netloc}".lower()
    ):
        raise ImproperlyConfigured(
            f"{name}: {entry[:80]!r} is not an origin, such as https://app.example or"
            " http://127.0.0.1:5173: a scheme, a host and no path. List each origin; there is no"
            " `*` for all."
        )
    default = {"http": 80, "https": 443}[url.scheme]
    port = "" if url.port in (None, default) else f":{url.port}"
    return f"{url.scheme}://{host_name(url)}{port}"


def host_name(url: SplitResult) -> str:
    """Return a URL's host name as ALLOWED_HOSTS has it: IPv6 addresses in brackets."""
    name = url.hostname or ""
    return f"[{name}]" if ":" in name else name


def networks(env: Env, name: str) -> tuple[Network, ...]:
    """Return the addresses and networks in an environment variable, separated by commas; for IPv4
    also as IPv6 writes them.

    Raises:
        ImproperlyConfigured: An entry is not an address or network, or is every address.
    """
    entries = [entry.strip() for entry in env.str(name, "").split(",") if entry.strip()]
    found = [_network(name, entry) for entry in entries]
    return tuple(form for network in found for form in _forms(network))


def _network(name: str, entry: str) -> Network:
    try:
        network = ipaddress.ip_network(entry)
    except ValueError:
        raise ImproperlyConfigured(
            f"{name}: {entry[:80]!r} is not an address or network, such as 172.30.78.10 or"
            " 10.0.0.0/24. A name cannot be listed, only its addresses."
        ) from None
    if network.prefixlen == 0:
        raise ImproperlyConfigured(
            f"{name}: {entry!r} includes every address, so that any client could forge its own."
        )
    return network


def _forms(network: Network) -> tuple[Network, ...]:
    if isinstance(network, ipaddress.IPv6Network):
        return (network,)
    mapped = f"::ffff:{network.network_address}/{_MAPPED_BITS + network.prefixlen}"
    return network, ipaddress.ip_network(mapped)
