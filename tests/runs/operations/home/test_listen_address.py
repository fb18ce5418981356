"""The web part's address: the requested one or a clear refusal; without a request, the next free
port."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from decisions.foundation.security.loopback import is_loopback
from runs.operations.home import listen as listen_module
from runs.operations.home.errors import PortTaken, UnsafeStart
from runs.operations.home.listen import listen
from runs.operations.home.safety import refuse_unsafe_start
from tests.services import free_port


def test_a_requested_port_that_is_taken_is_refused_with_a_hint() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=f"Port {port} .* is in use .*--port"):
            listen(port)


def test_without_a_requested_port_a_taken_port_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setattr(listen_module, "FIRST_PORT", other.getsockname()[1])
        with listen(None) as listener:
            assert listener.getsockname()[1] > other.getsockname()[1]


def test_a_port_that_is_taken_on_every_address_counts_as_taken() -> None:
    with socket.create_server(("0.0.0.0", 0)) as other, pytest.raises(PortTaken):
        listen(other.getsockname()[1])


def test_the_port_of_a_server_that_just_closed_is_available() -> None:
    port = free_port()
    with listen(port) as first, socket.create_connection(("127.0.0.1", port)):
        first.accept()[0].close()
    listen(port).close()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs IPv6")
def test_every_address_of_ipv6_serves_ipv4_too() -> None:
    with listen(0, "::") as listener:
        socket.create_connection(("127.0.0.1", listener.getsockname()[1])).close()


def test_an_address_of_another_machine_is_refused_with_its_reason() -> None:
    with pytest.raises(PortTaken) as refused:
        listen(8123, "192.0.2.1")
    reason = os.strerror(errno.EADDRNOTAVAIL)
    assert str(refused.value) == (
        f"192.0.2.1:8123 cannot be listened on: {reason}. Choose another address with --host."
    )


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.8.8", "localhost", "::1", "::ffff:127.0.0.1", "[::1]"]
)
def test_loopback_addresses_are_recognized(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "", "127.0.0.1.evil"])
def test_an_address_that_others_reach_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_a_public_address_requires_its_host_names(settings: pytest.FixtureRequest) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1", "localhost"]  # type: ignore[attr-defined]
    with pytest.raises(UnsafeStart, match="CONTINUITY_ALLOWED_HOSTS"):
        refuse_unsafe_start("0.0.0.0")
    settings.ALLOWED_HOSTS = ["example.org"]  # type: ignore[attr-defined]
    refuse_unsafe_start("0.0.0.0")


def test_a_short_key_is_refused_everywhere(settings: pytest.FixtureRequest) -> None:
    settings.CONTINUITY_SECRET_KEYS = ["k" * 40, "short"]  # type: ignore[attr-defined]
    with pytest.raises(UnsafeStart, match="CONTINUITY_SECRET_KEYS"):
        refuse_unsafe_start("127.0.0.1")
