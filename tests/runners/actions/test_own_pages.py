"""The check for the product's own addresses."""

from __future__ import annotations

import socket

import pytest

from runners.actions.own_pages import is_own_page

OWN_URLS = [
    "http://localhost:8000/admin/",
    "http://127.0.0.1:8000/",
    "http://[::1]:8000/x",
    "http://0.0.0.0:8000/",
    "http://127.9.9.9:8000/",
    "http://app.localhost:8000/",
    "http://[::ffff:7f00:1]:8000/",
    "http://localhost.:8000/",
    "http://localhost:8123/",
    "https://work.example.org/runs/1",
    "http://office-pc:8000/",
    "http://10.0.0.5:8123/",
    "blob:http://localhost:8000/6f0c",
    "http://work.example.org:443/",
    "http://a.team.test:8000/",
    "http://team.test:8123/",
    "http://work.example.org:8000/admin/",
]
OTHER_URLS = [
    "http://localhost:3000/",
    "http://127.0.0.1:8001/",
    "https://example.org:8000/",
    "https://work.example.org:8443/",
    "https://work.example.org.evil.test/",
    "about:blank",
    "data:text/html,http://localhost:8000",
    "http://10.0.0.6:8000/",
    "chrome-error://chromewebdata/",
    "file:///etc/passwd",
    "http://localhost/",
    "http://ateam.test:8000/",
]


@pytest.fixture(autouse=True)
def _own_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTINUITY_OWN_PORTS", "8000, 8123")
    monkeypatch.setenv("CONTINUITY_PUBLIC_URL", "https://work.example.org/")
    monkeypatch.setenv("CONTINUITY_ALLOWED_HOSTS", "Office-PC,10.0.0.5,.team.test,*")


@pytest.mark.parametrize("url", OWN_URLS)
def test_a_page_of_the_product_is_recognized(url: str) -> None:
    assert is_own_page(url)


@pytest.mark.parametrize("url", OTHER_URLS)
def test_a_page_of_another_site_is_not_an_own_page(url: str) -> None:
    assert not is_own_page(url)


def test_the_addresses_and_the_host_name_of_this_machine_are_own() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no address but loopback")
        address = probe.getsockname()[0]
    assert is_own_page(f"http://{address}:8000/admin/")
    assert is_own_page(f"http://{socket.gethostname()}:8000/admin/")
    assert not is_own_page(f"http://{address}:3000/")


def test_the_default_port_is_own_without_any_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OWN_PORTS", "PUBLIC_URL", "ALLOWED_HOSTS"):
        monkeypatch.delenv(f"CONTINUITY_{name}")
    assert is_own_page("http://localhost:8000/")
    assert not is_own_page("http://localhost:8123/")
