"""Serve the runner on a socket until it is told to end; commands under way end with it."""

from __future__ import annotations

import logging
import signal
import socket

import uvicorn

from runners.docker_runner.access import HEAD_MAX_BYTES
from runners.docker_runner.app import RunnerApp
from runners.docker_runner.errors import CannotStart

KEEP_ALIVE_S = 120  # a gateway keeps its connections; one that closes under a call fails it
GRACE_S = 3  # for calls under way, before they are ended
_BACKLOG = 512


def listen(host: str, port: int) -> socket.socket:
    """Listen on the address.

    Raises:
        CannotStart: It is taken, or no address of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off Nagle's delay of 40 ms only where the protocol is named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        told = error.strerror if isinstance(error, OSError) else "that is no port"
        raise CannotStart(
            f"{host}:{port} cannot be listened on ({told}). Choose another with --port or --host."
        ) from None
    return listener


def serve(app: RunnerApp, listener: socket.socket) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    config = uvicorn.Config(
        app,
        http="h11",  # it bounds what it keeps of a head that is not whole
        h11_max_incomplete_event_size=HEAD_MAX_BYTES,
        loop="asyncio",
        lifespan="on",
        log_level="warning",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    # uvicorn raises the signal again when it is done; by then there is nothing left to end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    uvicorn.Server(config).run(sockets=[listener])
