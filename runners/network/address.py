"""Check which URLs a browser may open, by the text of the URL alone; no name is resolved.

The host is parsed as a browser parses it (WHATWG URL, UTS 46): `0x7f.1`, `127.1` and `2130706433`
are 127.0.0.1, `LOCALHOST.` is localhost. What a browser would silently repair (spaces, backslashes,
`%6c` or `ⓛ` in a host) is refused, so that the URL that was checked is the URL that is opened.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Literal
from urllib.parse import quote

from pydantic_core import Url

from runners.errors import AddressNotAllowed, InvalidTarget
from runners.network.allowlist import Address, allowed_networks, is_metadata

TrustLevel = Literal["local", "remote"]

MAX_URL_BYTES = 8192
DEFAULT_PORTS = {"http": 80, "https": 443}
_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*):(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"//(?P<authority>[^/\\?#]*)(?P<tail>.*)", re.DOTALL)
_BLANK = re.compile(r"[\s\x00-\x20\x7f-\xa0\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_HOST = re.compile(r"\[[0-9a-f:.]+\]|[a-z0-9._\-\u0080-\U0010ffff]+", re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")

_PRIVATE_SUFFIXES = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "private")
_PRIVATE_DOMAINS = ("home.arpa", "localdomain", "in-addr.arpa", "ip6.arpa")
_V6_UNICAST = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_NAT64_LOCAL = ipaddress.ip_network("64:ff9b:1::/48")
_V4_COMPATIBLE = ipaddress.ip_network("::/96")
_V4_TRANSLATED = ipaddress.ip_network("::ffff:0:0:0/96")
_ISATAP_MARKS = (0x00005EFE, 0x02005EFE)


def check_address(url: str, trust: TrustLevel) -> str:
    """Return the URL as a browser opens it: ASCII, scheme and host in lower case.

    Idempotent: checking the returned URL returns it unchanged.

    Raises:
        InvalidTarget: Not an http(s) URL, or a browser would interpret it differently from how it
            is written.
        AddressNotAllowed: `trust` is remote, and the host is neither public by its name or literal
            address nor allowed by the operator.
    """
    scheme, authority, tail = _split(url)
    host, port = _host_and_port(authority)
    host = _normal_host(host)
    if trust != "local":
        _refuse_private(host, port or DEFAULT_PORTS[scheme])
    port_suffix = "" if port is None or port == DEFAULT_PORTS[scheme] else f":{port}"
    path = quote(tail, safe="!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
    return f"{scheme}://{host}{port_suffix}{path if path.startswith('/') else '/' + path}"


def _split(url: str) -> tuple[str, str, str]:
    try:
        size = len(url.encode())
    except UnicodeEncodeError:
        raise InvalidTarget("The address contains characters that are not valid text.") from None
    if size > MAX_URL_BYTES:
        raise InvalidTarget(f"The address is longer than {MAX_URL_BYTES} bytes.")
    if _BLANK.search(url):
        raise InvalidTarget(
            "The address contains a space or a control character; write a space as %20."
        )
    parts = _URL.fullmatch(url)
    if parts is None or parts["scheme"].lower() not in DEFAULT_PORTS:
        raise InvalidTarget("Only http:// and https:// addresses can be opened.")
    inner = _AUTHORITY.fullmatch(parts["rest"])
    if inner is None or inner["tail"].partition("?")[0].partition("#")[0].count("\\"):
        raise InvalidTarget(
            "The address is malformed: the scheme must be followed by // and a host."
        )
    return parts["scheme"].lower(), inner["authority"], inner["tail"]


def _host_and_port(authority: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise InvalidTarget("The address contains a user name or password; leave it out.")
    host, colon, port = authority.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = authority, ""
    if not host:
        raise InvalidTarget("The address has no host.")
    if port and not (
        port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) <= 65535
    ):
        raise InvalidTarget("The port is not a number from 1 to 65535.")
    return host, int(port) if port else None


def _normal_host(host: str) -> str:
    """Return the host as a browser's address bar would show it."""
    if not _HOST.fullmatch(host):
        raise InvalidTarget("The host contains characters that are not allowed in host names.")
    try:
        parsed = Url(f"http://{host}/")
    except ValueError:
        raise InvalidTarget("The host is not a well-formed name or address.") from None
    name, in_unicode = parsed.host or "", parsed.unicode_host() or ""
    if host.isascii() and _literal(name) is not None:
        return name
    bare = name.removesuffix(".")
    if len(bare) > 253 or not all(map(_LABEL.fullmatch, bare.split("."))):
        raise InvalidTarget("The host name is malformed.")
    written, labels = host.split("."), name.split(".")
    spelled = map(_is_spelled, written, labels, in_unicode.split("."))
    if len(written) != len(labels) or not all(spelled):
        raise InvalidTarget("The host name is an alternative spelling of another name; use that.")
    return name


def _is_spelled(written: str, label: str, in_unicode: str) -> bool:
    """Return whether a label is written as browsers show it, but for upper case."""
    lowered = written.lower()
    return lowered == label if written.isascii() else lowered == in_unicode != label


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def _refuse_private(host: str, port: int) -> None:
    address = _literal(host)
    if address is None:
        is_blocked = is_blocked_name(host)
    else:
        is_blocked = not (is_public(address) or is_allowed(address, port))
    if is_blocked:
        raise address_not_public(host.strip("[]"))


def address_not_public(host: str) -> AddressNotAllowed:
    """Return the failure of a page at a host that remote callers may not reach."""
    return AddressNotAllowed(
        f"{host[:253]} is not a public address; remote callers reach public addresses only.",
        details={"cause": "URL_BLOCKED", "host": host[:253]},
    )


def is_blocked_name(name: str) -> bool:
    """Return whether a name is refused without resolving it: it belongs to a private network.

    If the operator allowed any networks, no name is refused here: its addresses are checked.
    """
    return not allowed_networks() and is_private_name(name.removesuffix("."))


def is_private_name(name: str) -> bool:
    """Return whether a name without a trailing dot belongs to a private network by its spelling."""
    labels = name.split(".")
    if len(labels) == 1 or labels[-1] in _PRIVATE_SUFFIXES:
        return True
    return any(name == domain or name.endswith(f".{domain}") for domain in _PRIVATE_DOMAINS)


def is_public(address: Address) -> bool:
    """Return whether the address, and any IPv4 address embedded in it, is on the open internet."""
    if is_metadata(address) or not address.is_global or address.is_multicast:
        return False
    if address.version == 6 and address not in _V6_UNICAST and address not in _NAT64:
        return False
    return all(is_public(embedded) for embedded in embedded_ipv4(address))


def is_allowed(address: Address, port: int) -> bool:
    """Return whether the operator allows this address and port (CONTINUITY_EGRESS_ALLOW).

    A cloud metadata service is never allowed, in whatever form its address is written.
    """
    if any(is_metadata(candidate) for candidate in (address, *embedded_ipv4(address))):
        return False
    effective = getattr(address, "ipv4_mapped", None) or address
    return any(network.covers(effective, port) for network in allowed_networks())


def embedded_ipv4(address: Address) -> list[ipaddress.IPv4Address]:
    """Return the IPv4 addresses that packets to an address may reach.

    An IPv6 address embeds them as IPv4-mapped, NAT64, 6to4, Teredo or ISATAP address.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return []
    value = int(address)
    low = ipaddress.IPv4Address(value & 0xFFFFFFFF)
    found = [inner for inner in (address.ipv4_mapped, address.sixtofour) if inner is not None]
    if address.teredo is not None:
        found.extend(address.teredo)
    if any(address in net for net in (_NAT64, _NAT64_LOCAL, _V4_COMPATIBLE, _V4_TRANSLATED)):
        found.append(low)
    if (value >> 32) & 0xFFFFFFFF in _ISATAP_MARKS:
        found.append(low)
    return found
