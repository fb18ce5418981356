"""Settings that follow from the public URL and the trusted proxies."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from environ import Env

from config.web import networks, public_url
from runs.operations.health.checks import check_public_url
from tests.config.test_settings_defaults import SHARED, read_settings

NAME = "CONTINUITY_OF_A_TEST"
TLS = (
    "settings.SESSION_COOKIE_SECURE, settings.CSRF_COOKIE_SECURE,"
    " settings.SECURE_HSTS_SECONDS > 0, settings.SECURE_SSL_REDIRECT"
)
HTTPS = {"CONTINUITY_PUBLIC_URL": "https://continuity.example/"}
PROXY = {"CONTINUITY_TRUSTED_PROXIES": "172.30.78.10, fd00:1::/64"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, (False, False, False, False)),
        ({"CONTINUITY_PUBLIC_URL": "http://127.0.0.1:8000"}, (False, False, False, False)),
        (HTTPS, (True, True, True, False)),  # a redirect would be redirected again, forever
        ({**HTTPS, **PROXY}, (True, True, True, True)),
    ],
    ids=["nothing", "http", "https", "https and a proxy"],
)
def test_cookies_and_pages_need_tls_if_the_public_url_is_https(
    tmp_path: Path, environment: dict[str, str], expected: tuple[bool, ...]
) -> None:
    read = read_settings(tmp_path, f"({TLS})", **environment)
    assert ast.literal_eval(read.stdout) == expected, read.stderr


def test_the_name_in_the_public_url_is_a_host_and_an_origin_of_this_server(tmp_path: Path) -> None:
    expression = "(settings.ALLOWED_HOSTS, settings.CSRF_TRUSTED_ORIGINS, settings.PUBLIC_URL)"
    read = read_settings(tmp_path, expression, CONTINUITY_PUBLIC_URL="https://[2001:db8::1]:8443/")
    hosts, origins, url = ast.literal_eval(read.stdout)
    assert hosts == ["127.0.0.1", "localhost", "[::1]", "[2001:db8::1]"]
    assert origins == ["https://[2001:db8::1]:8443"]
    assert url == "https://[2001:db8::1]:8443"


@pytest.mark.parametrize(
    ("url", "proxies", "verdict", "words"),
    [
        ("", (), "ok", "this machine only"),
        ("http://127.0.0.1:8000", (), "ok", "on this machine"),
        ("http://continuity.example", (), "bad", "unencrypted"),
        ("https://continuity.example", (), "note", "unknown proxy"),
        ("https://continuity.example", ("10.0.0.5",), "ok", "trusted proxy"),
    ],
)
def test_doctor_reports_a_network_without_tls_or_with_an_unknown_proxy(
    settings: Any, url: str, proxies: tuple[str, ...], verdict: str, words: str
) -> None:
    settings.PUBLIC_URL, settings.PUBLIC_URL_PARTS = url, urlsplit(url)
    settings.IS_PUBLIC_OVER_TLS = url.startswith("https:")
    settings.TRUSTED_PROXIES = proxies
    result = check_public_url()
    assert result.verdict == verdict
    assert words in result.what
    assert bool(result.recovery) == (verdict != "ok")


def test_djangos_deployment_check_finds_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, **SHARED, **HTTPS, **PROXY, "CONTINUITY_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


@pytest.mark.parametrize(
    "text",
    ["continuity.example", "ftp://a.example", "https://", "https://a@b.example", "http://[x"],
)
def test_an_invalid_public_url_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(ImproperlyConfigured, match=NAME):
        public_url(Env(), NAME)


@pytest.mark.parametrize("text", ["proxy", "10.0.0.1/8", "0.0.0.0/0", "::/0", "*"])
def test_an_invalid_proxy_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(NAME, f"127.0.0.1,{text}")
    with pytest.raises(ImproperlyConfigured, match=NAME):
        networks(Env(), NAME)


def test_an_ipv4_proxy_is_trusted_on_an_ipv6_socket_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "172.30.78.0/24")
    found = [str(network) for network in networks(Env(), NAME)]
    assert found == ["172.30.78.0/24", "::ffff:172.30.78.0/120"] or found[1].endswith(":4e00/120")
