"""`manage.py serve`: run the web service alone."""

from __future__ import annotations

import contextlib
import socket
import sys
from argparse import ArgumentParser
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand

from runners.paired_browser.connections.hub import get_extension_hub
from runs.operations.health.service_heartbeat import ServiceHeartbeat
from runs.operations.home.errors import StackError
from runs.operations.home.listen import FIRST_PORT, listen
from runs.operations.home.prepare import prepare_home
from runs.operations.home.safety import refuse_unsafe_start
from runs.operations.web.connection_limits import (
    ConnectionLimits,
    WebConfig,
    allow_many_connections,
)
from runs.operations.web.http_protocol import LimitedProtocol
from runs.streaming.hub import get_hub

GRACEFUL_STOP_S = 3
SOCKET_MESSAGE_BYTES = 1024 * 1024  # a larger message closes the WebSocket with 1009


class Command(BaseCommand):
    """Serves REST, MCP over HTTP, the admin, event streams and WebSockets."""

    help = "Serve REST, MCP over HTTP and the admin. `up` runs this with everything it needs."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the address to listen on."""
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
        parser.add_argument("--port", type=int, default=FIRST_PORT, help=f"port ({FIRST_PORT})")
        parser.add_argument("--fd", type=int, help="an open listening socket, from a supervisor")

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until SIGTERM or Ctrl-C; open requests have three seconds to finish."""
        try:
            refuse_unsafe_start(options["host"])
            prepare_home()
            if options["fd"] is None:
                listener = listen(options["port"], options["host"])
                self.stdout.write(f"Serving on http://{options['host']}:{options['port']}")
            else:
                listener = socket.socket(fileno=options["fd"])
        except StackError as problem:
            self.stderr.write(str(problem))
            sys.exit(1)
        server = WebServer(web_config())
        server.heartbeat = ServiceHeartbeat("web")
        server.heartbeat.start()
        with listener, contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


class WebServer(uvicorn.Server):
    """A uvicorn server that ends event streams first, so that readers reconnect to the next one.

    Attributes:
        heartbeat: stopped with the server: after that, uvicorn ends the process by its signal.
    """

    heartbeat: ServiceHeartbeat | None = None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the event streams and the connections of browsers, then shut down."""
        get_hub().close()
        await get_extension_hub().close()
        await super().shutdown(sockets)
        if self.heartbeat is not None:
            self.heartbeat.stop()


def web_config() -> WebConfig:
    """Return uvicorn's configuration: our logging, limits of connections, and client addresses and
    schemes of forwarded requests from trusted proxies alone.
    """
    proxies = settings.TRUSTED_PROXIES
    limits = ConnectionLimits(connections=allow_many_connections(), proxies=proxies)
    return WebConfig(
        "config.asgi:application",
        limits=limits,
        http=LimitedProtocol,
        loop="uvloop",
        lifespan="auto",
        log_config=None,
        access_log=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=[str(network) for network in proxies],
        server_header=False,
        timeout_graceful_shutdown=GRACEFUL_STOP_S,
        ws_max_size=SOCKET_MESSAGE_BYTES,
    )
