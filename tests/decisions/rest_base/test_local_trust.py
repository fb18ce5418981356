"""Which calls count as local to this machine."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import RequestFactory

from decisions.rest_base.drf import is_local_call


def local(peer: str = "127.0.0.1", host: str = "127.0.0.1:8000", **headers: str) -> bool:
    request = RequestFactory().get("/", REMOTE_ADDR=peer, headers={"host": host, **headers})
    return is_local_call(request)


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_a_loopback_peer_is_local(peer: str) -> None:
    assert local(peer=peer)


@pytest.mark.parametrize("peer", ["", "10.0.0.1", "::ffff:10.0.0.1", "testclient", "0.0.0.0"])
def test_any_other_peer_is_remote(peer: str) -> None:
    assert not local(peer=peer)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LOCALHOST", "[::1]", "[::1]:80"])
def test_a_loopback_host_is_local(host: str) -> None:
    assert local(host=host)


@pytest.mark.parametrize("host", ["continuity.example", "10.0.0.1:80", "localhost.example"])
def test_any_other_host_is_remote(host: str, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    assert not local(host=host)


@pytest.mark.parametrize(
    "name", ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded"]
)
def test_a_call_forwarded_by_a_proxy_is_remote(name: str) -> None:
    assert not local(**{name: "127.0.0.1"})
