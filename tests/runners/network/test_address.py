"""Which addresses a browser may open, decided from their text without DNS lookups."""

from __future__ import annotations

import ipaddress
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runners.errors import AddressNotAllowed, InvalidTarget, ToolFailed
from runners.network.address import check_address
from tests.support.shared_files import BAD_INPUTS


def code_of(url: str, trust: str = "remote") -> str:
    try:
        check_address(url, "local" if trust == "local" else "remote")
    except ToolFailed as failure:
        return failure.code
    return "OK"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "chrome://settings",
        "about:blank",
        "data:text/html,x",
        "ftp://example.test/",
        "example.test",
        "//example.test/",
        "http:example.test",
        "http:/example.test/",
        "http://",
        "http:///path",
        "http://?q",
        "http://:80/",
        "http://user:pw@example.test/",
        "http://user@example.test/",
        "http://@example.test/",
        "http://example.test:99999/",
        "http://example.test:0/",
        "http://example.test:-1/",
        "http://example.test:٨٠/",
        "http://exa mple.test/",
        " http://example.test/",
        "http://example.test/a b",
        "http://example.test/\n",
        "http://exam\tple.test/",
        "http://example.test/\u202egpj.exe",
        "http://ⓛocalhost/",
        "http://１２７.0.0.1/",
        "http://127。0。0。1/",
        "http://exa\u00admple.test/",
        "http://\u212aelvin.test/",
        "http://example.test\\@127.0.0.1/",
        "http:\\\\127.0.0.1/",
        "http://%6c%6fcalhost/",
        "http://exam%00ple.test/",
        "http://ü%6c.example/",
        "http://a[ü.example/",
        "http://ü<script>.example/",
        "http://אa.example/",
        "http://a\u200db.example/",
        "http://a..b/",
        "http://-a.test/",
        "http://xn--localhost-/",
        "http://xn--a/",
        "http://1.2.3.4.5/",
        "http://256.1.1.1/",
        "http://0x100000000/",
        "http://09.1.1.1/",
        "http://example.0x1/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://[not-an-address]/",
        "http://a.test/\ud800",
        f"http://{'a' * 64}.test/",
        f"http://example.test/{'a' * 8192}",
    ],
)
def test_an_invalid_web_address_is_an_invalid_parameter(url: str) -> None:
    assert code_of(url, "remote") == code_of(url, "local") == "INVALID_PARAMETER"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://017700000001/",
        "http://2130706433/",
        "http://0/",
        "http://0.0.0.0:8000/",
        "http://127.0.0.1./",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://192.168.1.1/",
        "http://100.64.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://168.63.129.16/",
        "http://100.100.100.200/",
        "http://192.0.0.192/",
        "http://198.18.0.1/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://[::1]/",
        "http://[::]/",
        "http://[::127.0.0.1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:0:127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[64:ff9b:1::a00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[2002:a9fe:a9fe::]/",
        "http://[2001:0:7f00:1::]/",
        "http://[2a00:1450::5efe:127.0.0.1]/",
        "http://[fe80::1]/",
        "http://[fd00:ec2::254]/",
        "http://[ff02::1]/",
        "http://[4000::1]/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://app.localhost:3000/",
        "http://metadata.google.internal/",
        "http://metadata/",
        "http://router/",
        "http://printer.local/",
        "http://nas.home.arpa/",
    ],
)
def test_a_remote_caller_reaches_only_public_addresses(url: str) -> None:
    assert code_of(url, "remote") == "TRUST_LEVEL_NOT_ALLOWED"
    assert code_of(url, "local") == "OK"


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTP://Example.TEST", "http://example.test/"),
        ("https://example.test:443/a?b#c", "https://example.test/a?b#c"),
        ("http://example.test:8080?x=1", "http://example.test:8080/?x=1"),
        (
            "http://bücher.example/ü?q=中文",
            "http://xn--bcher-kva.example/%C3%BC?q=%E4%B8%AD%E6%96%87",
        ),
        ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
        ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
        ("https://例え.テスト/", "https://xn--r8jz45g.xn--zckzah/"),
        ("http://faß.de/", "http://xn--fa-hia.de/"),
        ("http://❤.example/", "http://xn--qei.example/"),
        ("http://foo_bar.example.com/", "http://foo_bar.example.com/"),
        ("http://134744072/", "http://8.8.8.8/"),
        ("http://[64:ff9b::808:808]/", "http://[64:ff9b::808:808]/"),
        ("http://[2606:4700:0:0:0:0:0:1111]/", "http://[2606:4700::1111]/"),
        ("http://example.test/%20%E4%B8%AD?a=%2B", "http://example.test/%20%E4%B8%AD?a=%2B"),
    ],
)
def test_a_public_address_is_returned_in_normal_form(url: str, normal: str) -> None:
    assert check_address(url, "remote") == normal


@pytest.mark.skipif(not BAD_INPUTS.exists(), reason="the shared list of bad inputs is not here")
def test_every_item_of_the_shared_list_gets_its_code() -> None:
    rows = [json.loads(line) for line in BAD_INPUTS.read_text().splitlines()]
    items = [row for row in rows if str(row.get("expect_code")).startswith("item:")]
    expected = {
        (url, row["expect_code"]) for row in items for url in row["input"]["inputs"]["urls"]
    }
    assert expected
    assert {(url, f"item:{code_of(url)}") for url, _ in expected} == expected


def spellings_of(number: int) -> list[str]:
    """Return the spellings of an IPv4 address that browsers accept."""
    address = ipaddress.IPv4Address(number)
    a, b, c, d = address.packed
    return [
        str(address),
        str(number),
        hex(number),
        f"{a:#x}.{b:#x}.{c:#x}.{d:#x}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"{a}.{(b << 16) + (c << 8) + d}",
        f"{a}.{b}.{(c << 8) + d:#x}",
    ]


def ipv6_forms_of(number: int) -> list[str]:
    """Return IPv6 addresses whose packets are routed to an IPv4 address."""
    address = ipaddress.IPv4Address(number)
    a, b, c, d = address.packed
    sixtofour = f"[2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1]"
    return [f"[::ffff:{address}]", f"[64:ff9b::{address}]", f"[64:ff9b:1::{address}]", sixtofour]


PRIVATE = ("0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "192.168.0.0/16")
private_numbers = st.sampled_from([ipaddress.IPv4Network(net) for net in PRIVATE]).flatmap(
    lambda net: st.integers(int(net.network_address), int(net.broadcast_address))
)


@given(private_numbers)
def test_every_spelling_of_a_private_address_is_refused(number: int) -> None:
    for host in spellings_of(number) + ipv6_forms_of(number):
        with pytest.raises(AddressNotAllowed):
            check_address(f"http://{host}/", "remote")


@given(st.integers(0, 2**32 - 1))
def test_every_spelling_is_normalized_to_its_address(number: int) -> None:
    address = ipaddress.IPv4Address(number)
    for host in spellings_of(number):
        assert check_address(f"http://{host}/", "local") == f"http://{address}/"


@given(st.text() | st.text(alphabet="htps:/@.[]%0x1279local#?\\ ⓛ。\t", max_size=30))
@example("http://[")
@example("http://xn--\u0080/")
def test_any_text_is_either_a_valid_address_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"https://{text}.example/"):
        try:
            normal = check_address(url, "remote")
        except (InvalidTarget, AddressNotAllowed):
            continue
        assert normal.isascii()
        assert check_address(normal, "remote") == normal
