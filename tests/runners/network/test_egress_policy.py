"""Which addresses the pages of remote callers may connect to."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Sequence

import pytest

from runners.network import egress
from runners.network.allowlist import Address
from runners.network.egress import (
    EgressDenied,
    EgressPolicy,
    NameNotResolved,
    is_allowed_for_remote,
    resolve_name,
)

ADDRESS = ipaddress.ip_address


def policy_resolving_to(*addresses: str) -> EgressPolicy:
    async def resolve(host: str) -> Sequence[Address]:
        return tuple(ADDRESS(text) for text in addresses)

    return EgressPolicy(resolve=resolve)


def check_host(policy: EgressPolicy, host: str, port: int = 80) -> Sequence[Address]:
    found = asyncio.run(policy.addresses_of(host))
    policy.check(host, port, found)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
    ],
)
def test_a_name_with_any_private_address_is_denied(text: str) -> None:
    with pytest.raises(EgressDenied):
        check_host(policy_resolving_to(text), "name.example")
    with pytest.raises(EgressDenied):
        check_host(policy_resolving_to("8.8.8.8", text), "name.example")


def test_a_public_name_returns_its_checked_addresses() -> None:
    found = check_host(policy_resolving_to("8.8.8.8", "2606:4700::1111"), "name.example")
    assert found == (ADDRESS("8.8.8.8"), ADDRESS("2606:4700::1111"))


def test_an_ip_address_is_checked_without_a_lookup() -> None:
    assert check_host(policy_resolving_to("10.0.0.1"), "8.8.8.8") == (ADDRESS("8.8.8.8"),)
    with pytest.raises(EgressDenied):
        check_host(policy_resolving_to("8.8.8.8"), "127.0.0.1")


@pytest.mark.parametrize(
    "host", ["localhost", "a.localhost", "router", "metadata.google.internal."]
)
def test_private_names_are_denied_without_a_lookup(host: str) -> None:
    with pytest.raises(EgressDenied):
        check_host(policy_resolving_to("8.8.8.8"), host)


def test_a_name_without_an_address_is_unknown() -> None:
    with pytest.raises(NameNotResolved):
        check_host(policy_resolving_to(), "name.example")


@pytest.mark.parametrize("port", [22, 25, 53, 6379 - 379, 6667])
def test_ports_of_other_services_are_denied(port: int) -> None:
    with pytest.raises(EgressDenied):
        check_host(policy_resolving_to("8.8.8.8"), "name.example", port)
    assert check_host(policy_resolving_to("8.8.8.8"), "name.example", 8080)


def test_this_machines_own_public_address_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        own = ADDRESS(probe.getsockname()[0])
    assert egress.is_own_address(own)
    monkeypatch.setattr(egress, "is_public", lambda address: True)
    assert not is_allowed_for_remote(own, 443)
    assert is_allowed_for_remote(ADDRESS("8.8.8.8"), 443)


def test_the_system_resolver_returns_addresses_or_none() -> None:
    assert ADDRESS("127.0.0.1") in asyncio.run(resolve_name("localhost"))
    assert asyncio.run(resolve_name("no-such-name.invalid")) == ()
    assert asyncio.run(resolve_name("a" * 70 + ".example")) == ()


def test_a_lookup_that_takes_too_long_returns_no_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress, "LOOKUP_SECONDS", 0.0)
    assert asyncio.run(resolve_name("localhost")) == ()
