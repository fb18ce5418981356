"""Serve the runner on a socket until SIGTERM or Ctrl-C; running commands are ended too."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket

import uvicorn

from runners.docker_runner.access import HEAD_MAX_BYTES
from runners.docker_runner.app import RunnerApp
from runners.docker_runner.errors import CannotStart

KEEP_ALIVE_S = 120  # a gateway reuses connections; one that closes during a call fails the call
GRACE_S = 3  # for calls in flight, before they are ended
END_S = 45  # for the end of commands and containers, and for the answers
_BACKLOG = 512


def listen(host: str, port: int) -> socket.socket:
    """Listen on the address.

    Raises:
        CannotStart: It is in use, or not an address of this machine.
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
        reason = error.strerror if isinstance(error, OSError) else "not a valid port"
        raise CannotStart(
            f"Cannot listen on {host}:{port} ({reason}). Choose another with --port or --host."
        ) from None
    return listener


class RunnerServer(uvicorn.Server):
    """A uvicorn server that ends calls in flight itself, so that their callers get an answer."""

    def __init__(self, config: uvicorn.Config, app: RunnerApp) -> None:
        super().__init__(config)
        self._app = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections; after GRACE_S, end the calls that still run."""
        asyncio.get_running_loop().call_later(GRACE_S, self._app.stop)
        await super().shutdown(sockets)


def serve(app: RunnerApp, listener: socket.socket) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    config = uvicorn.Config(
        app,
        http="h11",  # limits incomplete headers
        h11_max_incomplete_event_size=HEAD_MAX_BYTES,
        loop="asyncio",
        lifespan="on",
        log_level="warning",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S + END_S,
    )
    server = RunnerServer(config, app)
    # uvicorn handles signals only once it runs, and raises them again after its shutdown.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, server.handle_exit)
    server.run(sockets=[listener])
