"""Which addresses remote callers' pages may be connected to."""

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


def rule_for(*addresses: str) -> EgressPolicy:
    async def resolve(host: str) -> Sequence[Address]:
        return tuple(ADDRESS(text) for text in addresses)

    return EgressPolicy(resolve=resolve)


def judge(rule: EgressPolicy, host: str, port: int = 80) -> Sequence[Address]:
    found = asyncio.run(rule.addresses_of(host))
    rule.check(host, port, found)
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
def test_a_name_with_such_an_address_is_closed_also_beside_a_public_one(text: str) -> None:
    with pytest.raises(EgressDenied):
        judge(rule_for(text), "name.example")
    with pytest.raises(EgressDenied):
        judge(rule_for("8.8.8.8", text), "name.example")


def test_a_public_name_gives_the_addresses_that_were_checked() -> None:
    found = judge(rule_for("8.8.8.8", "2606:4700::1111"), "name.example")
    assert found == (ADDRESS("8.8.8.8"), ADDRESS("2606:4700::1111"))


def test_an_address_is_judged_as_it_stands_and_not_looked_up() -> None:
    assert judge(rule_for("10.0.0.1"), "8.8.8.8") == (ADDRESS("8.8.8.8"),)
    with pytest.raises(EgressDenied):
        judge(rule_for("8.8.8.8"), "127.0.0.1")


@pytest.mark.parametrize(
    "host", ["localhost", "a.localhost", "router", "metadata.google.internal."]
)
def test_names_of_private_networks_are_not_even_looked_up(host: str) -> None:
    with pytest.raises(EgressDenied):
        judge(rule_for("8.8.8.8"), host)


def test_a_name_without_an_address_is_unknown() -> None:
    with pytest.raises(NameNotResolved):
        judge(rule_for(), "name.example")


@pytest.mark.parametrize("port", [22, 25, 53, 6379 - 379, 6667])
def test_ports_of_other_services_are_closed(port: int) -> None:
    with pytest.raises(EgressDenied):
        judge(rule_for("8.8.8.8"), "name.example", port)
    assert judge(rule_for("8.8.8.8"), "name.example", 8080)


def test_this_machines_own_public_address_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        own = ADDRESS(probe.getsockname()[0])
    assert egress.is_own_address(own)
    monkeypatch.setattr(egress, "is_public", lambda address: True)
    assert not is_allowed_for_remote(own, 443)
    assert is_allowed_for_remote(ADDRESS("8.8.8.8"), 443)


def test_the_systems_resolver_is_asked_for_every_address() -> None:
    assert ADDRESS("127.0.0.1") in asyncio.run(resolve_name("localhost"))
    assert asyncio.run(resolve_name("no-such-name.invalid")) == ()
    assert asyncio.run(resolve_name("a" * 70 + ".example")) == ()


def test_a_resolver_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress, "LOOKUP_SECONDS", 0.0)
    assert asyncio.run(resolve_name("localhost")) == ()
