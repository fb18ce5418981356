"""CONTINUITY_EGRESS_ALLOW: what it opens to remote callers, what it never opens, its errors."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runners.errors import AddressNotAllowed
from runners.network.address import check_address
from runners.network.allowlist import parse_allowed_networks
from runners.network.egress import EgressDenied, EgressPolicy, is_allowed_for_remote
from runs.operations.health.checks import check_egress
from runs.webhooks.deliveries import WebhookResponse
from runs.webhooks.transport import may_reach, post
from tests.support.browser.forbidden_server import serve_forbidden
from tests.support.runs.webhook_receiver import run_receiver

ADDRESS = ipaddress.ip_address
ALLOWED = "10.20.0.0/16, 192.168.1.5:8443,fd00:1::/64,[fd00:2::5]:8443"
MANAGE = Path(__file__).parents[3] / "manage.py"


@pytest.fixture
def allow_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTINUITY_EGRESS_ALLOW", ALLOWED)


def test_a_parsed_list_prints_as_it_was_written() -> None:
    assert ",".join(map(str, parse_allowed_networks(ALLOWED))) == ALLOWED.replace(" ", "")
    assert parse_allowed_networks("") == parse_allowed_networks(" , ") == ()


@pytest.mark.parametrize(
    "entry",
    [
        "wiki",
        "wiki.corp:80",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "1.2.3.4:0",
        "1.2.3.4:65536",
        "[::1",
        ":80",
        "[]:80",
        "http://10.0.0.1",
        "10.0.0.1:80:90",
        "*",
        "127.1",
        "169.254.169.254",
        "169.254.0.0/24",
        "fe80::/64",
        "168.63.129.16:80",
        "fd00:ec2::254",
        "100.100.100.200/32",
    ],
)
def test_an_invalid_or_metadata_entry_is_refused_and_named(entry: str) -> None:
    with pytest.raises(ValueError, match="is ") as raised:
        parse_allowed_networks(f"10.0.0.0/8,{entry}")
    assert repr(entry) in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://10.20.3.4/",
        "http://10.20.3.4:9000/x",
        "https://192.168.1.5:8443/",
        "http://[fd00:1::9]/",
        "http://[fd00:2::5]:8443/",
        "http://[::ffff:10.20.3.4]/",
        "http://wiki.corp/",
        "http://router/",
    ],
)
def test_an_address_in_the_list_is_allowed(allow_networks: None, url: str) -> None:
    assert check_address(url, "remote")


@pytest.mark.parametrize(
    "url",
    [
        "http://10.21.0.1/",
        "http://192.168.1.5/",
        "https://192.168.1.5/",
        "http://192.168.1.6:8443/",
        "http://[fd00:2::5]/",
        "http://127.0.0.1/",
        "http://169.254.169.254/",
        "http://[::1]/",
    ],
)
def test_an_address_outside_the_list_is_refused(allow_networks: None, url: str) -> None:
    with pytest.raises(AddressNotAllowed):
        check_address(url, "remote")


@pytest.mark.parametrize("name", ["wiki.corp", "router", "localhost"])
def test_a_private_name_is_allowed_only_if_all_its_addresses_are(
    allow_networks: None, name: str
) -> None:
    resolved: list[str] = ["10.20.0.1", "127.0.0.1"]

    async def resolve(_: str) -> list[ipaddress.IPv4Address]:
        return [ipaddress.IPv4Address(text) for text in resolved]

    rule = EgressPolicy(resolve=resolve)
    both = asyncio.run(rule.addresses_of(name))
    rule.check(name, 80, both[:1])
    with pytest.raises(EgressDenied):
        rule.check(name, 80, both)


EVERYTHING = "0.0.0.0/0,::/0"


@pytest.mark.parametrize(
    "text",
    [
        "169.254.169.254",
        "169.254.170.2",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fe80::1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "::169.254.169.254",
    ],
)
def test_metadata_services_stay_closed_when_everything_is_opened(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CONTINUITY_EGRESS_ALLOW", EVERYTHING)
    assert not is_allowed_for_remote(ADDRESS(text), 80)
    assert not may_reach(ADDRESS(text), 80, "remote")
    assert not may_reach(ADDRESS(text), 80, "local")
    assert is_allowed_for_remote(ADDRESS("10.0.0.1"), 80)


def test_ports_that_browsers_block_stay_closed(allow_networks: None) -> None:
    assert is_allowed_for_remote(ADDRESS("10.20.0.1"), 6379)
    assert not is_allowed_for_remote(ADDRESS("10.20.0.1"), 25)


def test_a_webhook_of_a_remote_caller_reaches_only_allowed_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def send(url: str) -> WebhookResponse:
        return asyncio.run(post(url, trust="remote", headers={}, body=b"{}"))

    with run_receiver() as receiver, serve_forbidden() as forbidden:
        assert send(receiver.url).status_code is None
        port = receiver.url.split(":")[2].split("/")[0]
        monkeypatch.setenv("CONTINUITY_EGRESS_ALLOW", f"127.0.0.1:{port}")
        assert send(receiver.url).status_code == 200
        assert "not a public address" in send(forbidden.url()).error
        assert (len(receiver.requests), forbidden.visits) == (1, 0)


def test_no_command_starts_with_an_invalid_list(tmp_path: Path) -> None:
    environment = {**os.environ, "CONTINUITY_HOME": str(tmp_path)}
    completed = subprocess.run(
        [sys.executable, str(MANAGE), "status"],
        capture_output=True,
        text=True,
        check=False,
        env=environment | {"CONTINUITY_EGRESS_ALLOW": "10.0.0.0/8,wiki"},
    )
    assert (completed.returncode, completed.stdout) == (1, "")
    assert completed.stderr.startswith(
        "CONTINUITY_EGRESS_ALLOW: 'wiki' is not an address or network"
    )
    assert len(completed.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "verdict", "summary"),
    [
        ("", "ok", "remote callers reach public addresses only"),
        ("10.0.0.0/8,127.0.0.1:90", "ok", "remote callers also reach 10.0.0.0/8, 127.0.0.1:90"),
        ("127.0.0.0/8", "note", "remote callers also reach 127.0.0.0/8"),
        ("::/0", "note", "remote callers also reach ::/0"),
    ],
)
def test_doctor_reports_what_is_open(settings: Any, text: str, verdict: str, summary: str) -> None:
    settings.CONTINUITY_EGRESS_ALLOW = parse_allowed_networks(text)
    finding = check_egress()
    assert (finding.verdict, finding.what) == (verdict, summary)
    assert bool(finding.recovery) == (verdict == "note")
