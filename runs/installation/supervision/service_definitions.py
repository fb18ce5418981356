"""The parts of the real stack, and what tells that each of them is ready and well."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import sys
import time
from pathlib import Path

from django.conf import settings

from runs.installation.home import redis_server
from runs.installation.home.errors import ServiceFailed
from runs.installation.home.paths import HomePaths
from runs.installation.supervision.liveness import WorkerLiveness, WorkerProbe
from runs.installation.supervision.services import Service
from runs.installation.supervision.watcher import LAST

_PROBE_TIMEOUT_S = 1.0


def service_environment(listener: socket.socket) -> dict[str, str]:
    """Return our environment for the parts, made explicit where they could read it differently.

    They are told where the web listens, so that no page of ours is opened for a tool. Compiled
    modules are kept, since starting without them takes three times as long.
    """
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    own_ports = sorted({listener.getsockname()[1], *settings.WORKSPACE_POLICY.own_ports})
    return {
        **env,
        "CONTINUITY_OWN_PORTS": ",".join(map(str, own_ports)),
        "PYTHONUNBUFFERED": "1",
        "CONTINUITY_HOME": str(settings.CONTINUITY_HOME),
        "REDIS_URL": settings.REDIS_URL,
        "CELERY_BROKER_URL": settings.CELERY_BROKER_URL,
        "CELERY_SKIP_CHECKS": "1",  # Django's checks of our code are for tests, not for every start
    }


def define_services(at: HomePaths, listener: socket.socket, vitals: WorkerProbe) -> list[Service]:
    """Return the parts in the order in which they are shown; redis only where it is ours to run."""
    host, port = listener.getsockname()[:2]
    parts = [redis_service(at)] if settings.REDIS_SOCKET else []
    return [
        *parts,
        Service(
            name="web",
            argv=manage_command("serve", "--fd", str(listener.fileno())),
            where=f"http://{host}:{port}",
            is_ready=lambda pid: is_serving(host, port),
            pass_fds=(listener.fileno(),),
        ),
        Service(
            name="worker",
            argv=manage_command("worker"),
            where=f"{settings.MAX_CONCURRENT_RUNS} runs at once",
            is_ready=vitals.is_registered,
            unhealthy_reason=WorkerLiveness(vitals).unhealthy_reason,
        ),
        Service(
            name="scheduler",
            argv=manage_command("scheduler"),
            where="rings for, reaps and expires what needs it",
            is_ready=SigtermReadiness().is_settled,
        ),
    ]


def manage_command(*arguments: str) -> tuple[str, ...]:
    """Return the command line of one of our management commands, in this interpreter."""
    return (sys.executable, str(Path(settings.BASE_DIR) / "manage.py"), *arguments)


def redis_service(at: HomePaths) -> Service:
    """Return the private server; one left over on its socket is ended first, its data is kept.

    Raises:
        ServiceFailed: There is no server program, or its folder is not private.
    """
    binary = redis_server.find_binary()
    if binary is None:
        raise ServiceFailed(
            "No redis-server or valkey-server was found. Install one (Debian: apt-get install"
            " redis-server), or set REDIS_URL to a server that runs."
        )
    path = Path(str(settings.REDIS_SOCKET))
    for folder in (path.parent, at.redis):
        redis_server.create_private_folder(folder)
    redis_server.stop_leftover_server(path)

    def mend() -> str | None:
        aside = redis_server.move_unreadable_data(at.redis)
        return f"its data, which is not needed, was moved to {aside}" if aside else None

    return Service(
        name=LAST,
        argv=tuple(redis_server.command(binary, socket_path=path, folder=at.redis)),
        where=str(path),
        is_ready=lambda pid: redis_server.is_responding(path),
        mend=mend,
    )


def remove_socket_folder(at: HomePaths) -> None:
    """Remove the socket's folder where it could not be in the home; the server is gone."""
    if settings.REDIS_SOCKET and not settings.REDIS_SOCKET.is_relative_to(at.home):
        with contextlib.suppress(OSError):
            settings.REDIS_SOCKET.parent.rmdir()


def is_serving(host: str, port: int) -> bool:
    """Tell whether the web part answers GET /healthz with 200."""
    connection = http.client.HTTPConnection(host, port, timeout=_PROBE_TIMEOUT_S)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class SigtermReadiness:
    """Readiness of a program that answers nobody: it has arranged for SIGTERM.

    Where the system does not tell, it lives for two seconds.
    """

    _LONG_ENOUGH_S = 2.0

    def __init__(self) -> None:
        self._first_seen: dict[int, float] = {}

    def is_settled(self, pid: int) -> bool:
        """Tell whether the process has got past its start."""
        since = self._first_seen.setdefault(pid, time.monotonic())
        catches = _catches_sigterm(pid)
        return time.monotonic() - since > self._LONG_ENOUGH_S if catches is None else catches


def _catches_sigterm(pid: int) -> bool | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    masks = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return bool(int(masks.get("SigCgt", "0"), 16) >> (signal.SIGTERM - 1) & 1)
