"""Calls to a runner go only to allowed addresses, over trusted TLS, and never through a proxy."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

import pytest

from runners.gateway import connections
from runners.network import http_client
from runners.network.allowlist import Address
from runners.network.egress import EgressPolicy
from tests.support.runners.runner_calls import call, failure_details, target_at
from tests.support.runners.self_signed_certificate import self_signed
from tests.support.runners.stub_runner import responding_with, stub_runner

pytestmark = pytest.mark.usefixtures("open_loopback")

OK = b'{"ok":true,"output":"x"}'


def test_a_self_signed_certificate_is_not_trusted(tmp_path: Path) -> None:
    with stub_runner(responding_with(OK), self_signed(tmp_path)) as runner:
        result = call(runner.url)
    assert failure_details(result) == {"reason": "connect", "effect": "none"}
    assert "certificate" in (result.error or {})["message"]


def test_a_runner_with_a_trusted_certificate_is_called_over_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    http_client._certificates.cache_clear()
    try:
        with stub_runner(responding_with(OK), tls) as runner:
            assert call(runner.url, times=2).output == "x"
    finally:
        http_client._certificates.cache_clear()
    assert runner.connections == 1


@pytest.mark.parametrize(
    "endpoint", ["http://169.254.169.254/latest", "http://10.9.8.7/execute", "ftp://example.com/x"]
)
def test_an_endpoint_that_is_not_allowed_is_not_called(endpoint: str) -> None:
    assert failure_details(call(endpoint)) == {"reason": "connect", "effect": "none"} | (
        {"cause": "URL_BLOCKED", "host": endpoint.split("/")[2]} if endpoint[0] == "h" else {}
    )


def test_a_name_is_allowed_only_if_all_its_addresses_are(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look_up(host: str) -> Sequence[Address]:
        return (ip_address("127.0.0.1"), ip_address("10.1.1.1"))

    monkeypatch.setattr(connections, "EgressPolicy", lambda: EgressPolicy(resolve=look_up))
    with stub_runner(responding_with(OK)) as runner:
        result = call(runner.url.replace("127.0.0.1", "runner.example"))
    assert failure_details(result) == {"reason": "connect", "effect": "none"}
    assert runner.connections == 0


def test_a_call_connects_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look_up(host: str) -> Sequence[Address]:
        return (ip_address("127.0.0.1"),)

    monkeypatch.setattr(connections, "EgressPolicy", lambda: EgressPolicy(resolve=look_up))
    with stub_runner(responding_with(OK)) as runner:
        # The system's resolver does not know this name.
        result = call(runner.url.replace("127.0.0.1", "runner.example"))
    assert (result.output, runner.connections) == ("x", 1)


def test_a_proxy_from_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with stub_runner(responding_with(OK)) as runner, stub_runner(responding_with(OK)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert call(runner.url).ok
    assert proxy.requests == []


def test_no_failure_contains_the_token() -> None:
    with stub_runner(responding_with(b"no", 500)) as runner:
        result = call(runner.url, auth_token="s3cret-token")
    assert "s3cret-token" not in str(result)
    assert "s3cret-token" not in repr(target_at(runner.url, auth_token="s3cret-token"))
