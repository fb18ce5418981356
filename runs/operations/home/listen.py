"""Open the web service's listening socket, which stays open while the service restarts."""

from __future__ import annotations

import errno
import socket

from runs.operations.home.errors import PortTaken

FIRST_PORT = 8000
_PORTS_TRIED = 100
_BACKLOG = 2048


def listen(port: int | None, host: str = "127.0.0.1") -> socket.socket:
    """Listen on the port; if None, on the first free one from FIRST_PORT on.

    Raises:
        PortTaken: The port is in use, needs more rights, or is not a port number.
    """
    if port is not None:
        if not 0 <= port <= 65535:
            raise PortTaken(f"{port} is not a port; --port takes a number from 1 to 65535.")
        try:
            return _bind(host, port)
        except OSError as exc:
            raise PortTaken(_reason(host, port, exc)) from exc
    for candidate in range(FIRST_PORT, FIRST_PORT + _PORTS_TRIED):
        try:
            return _bind(host, candidate)
        except OSError as exc:
            if exc.errno != errno.EADDRINUSE:
                raise PortTaken(_reason(host, candidate, exc)) from exc
    return _bind(host, 0)


def _bind(host: str, port: int) -> socket.socket:
    is_ipv6 = ":" in host
    return socket.create_server(
        (host, port),
        family=socket.AF_INET6 if is_ipv6 else socket.AF_INET,
        backlog=_BACKLOG,
        dualstack_ipv6=is_ipv6 and socket.has_dualstack_ipv6(),  # "::" serves IPv4 too
    )


def _reason(host: str, port: int, exc: OSError) -> str:
    if exc.errno == errno.EADDRINUSE:
        return (
            f"Port {port} on {host} is in use by another program."
            " Choose another with --port, or leave --port out to get a free one."
        )
    if exc.errno == errno.EACCES:
        return f"Port {port} needs more rights than yours. Choose one above 1023 with --port."
    # create_server appends the address as a Python tuple.
    reason = str(exc.strerror).partition(" (while")[0]
    return f"{host}:{port} cannot be listened on: {reason}. Choose another address with --host."
