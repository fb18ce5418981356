"""The services of the stack: their commands, readiness checks and health checks."""

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

from runners.child_environment import child_environment
from runs.operations.home import redis_server
from runs.operations.home.errors import ServiceFailed
from runs.operations.home.paths import HomePaths
from runs.operations.supervision.liveness import WorkerLiveness, WorkerProbe
from runs.operations.supervision.services import Service
from runs.operations.supervision.watcher import STOPPED_LAST

_PROBE_TIMEOUT_S = 1.0
# Only workers call the language model.
_MODEL_SECRETS = frozenset({"CONTINUITY_LLM_API_KEY"})


def service_environment(listener: socket.socket) -> dict[str, str]:
    """Return the environment of a worker: this process's, with the values of derived settings.
    Templates and tools of the operator may need any variable, so none is left out.

    It names the web service's port, so that tools refuse to open our own pages. It allows .pyc
    files, without which a start takes three times as long.
    """
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    own_ports = sorted({listener.getsockname()[1], *settings.WORKSPACE_POLICY.own_ports})
    return {
        **env,
        "CONTINUITY_OWN_PORTS": ",".join(map(str, own_ports)),
        "PYTHONUNBUFFERED": "1",
        "CONTINUITY_HOME": str(settings.CONTINUITY_HOME),
        "REDIS_URL": settings.REDIS_URL,
        "CELERY_SKIP_CHECKS": "1",  # Django's system checks run in the tests, not at every start
    }


def define_services(paths: HomePaths, listener: socket.socket, probe: WorkerProbe) -> list[Service]:
    """Return the services in display order; redis only if no REDIS_URL names another server."""
    host, port = listener.getsockname()[:2]
    env = service_environment(listener)
    without_model = {name: value for name, value in env.items() if name not in _MODEL_SECRETS}
    redis = [redis_service(paths)] if settings.REDIS_SOCKET else []
    return [
        *redis,
        Service(
            name="web",
            argv=manage_command("serve", "--fd", str(listener.fileno())),
            env=without_model,
            where=f"http://{host}:{port}",
            is_ready=lambda pid: is_serving(host, port),
            pass_fds=(listener.fileno(),),
        ),
        Service(
            name="worker",
            argv=manage_command("worker"),
            env=env,
            where=f"{settings.MAX_CONCURRENT_RUNS} runs at once",
            is_ready=probe.is_registered,
            unhealthy_reason=WorkerLiveness(probe).unhealthy_reason,
        ),
        Service(
            name="scheduler",
            argv=manage_command("scheduler"),
            env=without_model,
            where="recovers and expires runs",
            is_ready=SigtermReadiness().is_ready,
        ),
    ]


def manage_command(*arguments: str) -> tuple[str, ...]:
    """Return the command line of a management command, with this Python interpreter."""
    return (sys.executable, str(Path(settings.BASE_DIR) / "manage.py"), *arguments)


def redis_service(paths: HomePaths) -> Service:
    """Return the private Redis server. Stops a leftover server on its socket first; keeps its data.

    Raises:
        ServiceFailed: There is no server program, or its folder is not private.
    """
    binary = redis_server.find_binary()
    if binary is None:
        raise ServiceFailed(
            "No redis-server or valkey-server was found. Install one (Debian: apt-get install"
            " redis-server), or set REDIS_URL to a running server."
        )
    path = Path(str(settings.REDIS_SOCKET))
    for folder in (path.parent, paths.redis):
        redis_server.create_private_folder(folder)
    redis_server.stop_leftover_server(path)

    def repair() -> str | None:
        moved_to = redis_server.move_unreadable_data(paths.redis)
        return f"its data, which is not needed, was moved to {moved_to}" if moved_to else None

    return Service(
        name=STOPPED_LAST,
        argv=tuple(redis_server.command(binary, socket_path=path, folder=paths.redis)),
        env=child_environment(),
        where=str(path),
        is_ready=lambda pid: redis_server.is_responding(path),
        repair=repair,
    )


def remove_socket_folder(paths: HomePaths) -> None:
    """Remove the socket's folder if it is outside the home; the server has ended."""
    if settings.REDIS_SOCKET and not settings.REDIS_SOCKET.is_relative_to(paths.home):
        with contextlib.suppress(OSError):
            settings.REDIS_SOCKET.parent.rmdir()


def is_serving(host: str, port: int) -> bool:
    """Return whether the web service answers GET /healthz with 200."""
    connection = http.client.HTTPConnection(host, port, timeout=_PROBE_TIMEOUT_S)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class SigtermReadiness:
    """Readiness of a program without an interface: it has installed its handler of SIGTERM.

    Without /proc: it has run for two seconds.
    """

    _FALLBACK_S = 2.0

    def __init__(self) -> None:
        self._first_seen: dict[int, float] = {}

    def is_ready(self, pid: int) -> bool:
        """Return whether the process has started up."""
        since = self._first_seen.setdefault(pid, time.monotonic())
        catches = _catches_sigterm(pid)
        return time.monotonic() - since > self._FALLBACK_S if catches is None else catches


def _catches_sigterm(pid: int) -> bool | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    masks = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return bool(int(masks.get("SigCgt", "0"), 16) >> (signal.SIGTERM - 1) & 1)
