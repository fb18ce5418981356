"""`manage.py docker_runner`: options, their checks, and the messages at start.

manage.py runs this without Django: a runner's machine has no database and needs no settings.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from decisions.foundation.security.loopback import is_loopback
from decisions.foundation.security.secret_files import SecretFileUnusable, read_secret_files
from runners.docker_runner.access import AccessControl
from runners.docker_runner.app import RunnerApp
from runners.docker_runner.errors import CannotStart
from runners.docker_runner.isolation.base import MIB, Isolation, Limits, RunnerFolder
from runners.docker_runner.isolation.bubblewrap import BubblewrapIsolation
from runners.docker_runner.isolation.process import ProcessIsolation
from runners.docker_runner.server import listen, serve
from runners.network.allowlist import allowed_networks

HELP = "Execute tools that a gateway sends, in one folder (S3). See docs/docker-runner.md."
PORT = 18081
TOKEN = "CONTINUITY_RUNNER_TOKEN"  # noqa: S105  (a variable's name)
IMAGE = "CONTINUITY_RUNNER_IMAGE"
DEFAULT_IMAGE = "debian:bookworm-slim"
TOKEN_MIN = 16
_PROJECT = Path(__file__).resolve().parent.parent.parent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    limits = Limits()
    add = parser.add_argument
    add(
        "--root",
        required=True,
        type=Path,
        help="the folder that tools work in; nothing outside of it is changed",
    )
    add("--port", type=int, default=PORT, help=f"port ({PORT}); 0 for a free one")
    add("--host", default="127.0.0.1", help="address (127.0.0.1); any other needs a token")
    add(
        "--isolation",
        choices=("bubblewrap", "docker", "process"),
        default="bubblewrap",
        help="isolation of commands (bubblewrap); process: none, for development only",
    )
    add(
        "--token",
        help=f"bearer token of callers; prefer {TOKEN}, because every user of this"
        " machine can read a command line",
    )
    add("--allow-net", action="store_true", help="let commands and http.request use the network")
    add(
        "--name",
        action="append",
        default=[],
        dest="names",
        metavar="HOST",
        help="a host name of this runner besides localhost; repeatable",
    )
    add(
        "--image",
        default=os.environ.get(IMAGE, "") or DEFAULT_IMAGE,
        help=f"container image, also {IMAGE} ({DEFAULT_IMAGE})",
    )
    add("--memory-mb", type=int, default=limits.memory_bytes // MIB, help="memory of a command")
    add("--cpus", type=float, default=limits.cpus, help="processors of a command")
    add("--max-processes", type=int, default=limits.processes, help="processes of a command")


def main(arguments: Sequence[str]) -> int:
    """Read the options and serve; return the exit status."""
    parser = argparse.ArgumentParser(prog="manage.py docker_runner", description=HELP)
    add_arguments(parser)
    return run(vars(parser.parse_args(arguments)))


def run(options: dict[str, Any]) -> int:
    """Serve until SIGTERM or Ctrl-C; return the exit status."""
    try:
        read_secret_files(os.environ)
        folder, access = runner_folder(options), access_control(options)
        isolation = isolation_of(options, folder)
        asyncio.run(isolation.check())
        listener = listen(options["host"], options["port"])
    except (CannotStart, SecretFileUnusable) as reason:
        sys.stderr.write(f"{reason}\n")
        return 1
    with listener:
        _announce(options, folder, listener.getsockname()[1])
        serve(RunnerApp(folder, isolation, options["isolation"], access), listener)
    return 0


def runner_folder(options: dict[str, Any]) -> RunnerFolder:
    """Return the folder in which commands run, with its limits.

    Raises:
        CannotStart: The folder is missing or overlaps CONTINUITY_HOME, or a limit is invalid.
    """
    try:
        root = options["root"].expanduser().resolve(strict=True)
        if not root.is_dir():
            raise NotADirectoryError
    except (OSError, RuntimeError):
        raise CannotStart(f"--root {options['root']} is not a folder. Create it first.") from None
    home = (
        Path(os.environ.get("CONTINUITY_HOME") or _PROJECT / ".continuity").expanduser().resolve()
    )
    if home.is_relative_to(root) or root.is_relative_to(home):
        raise CannotStart(
            f"--root {root} and CONTINUITY_HOME ({home}) overlap, so commands could read the keys"
            " and the database there. Choose another folder."
        )
    try:
        allowed_networks()
    except ValueError as error:
        raise CannotStart(f"CONTINUITY_EGRESS_ALLOW: {error}") from None
    memory, cpus, processes = (options[name] for name in ("memory_mb", "cpus", "max_processes"))
    if memory < 64 or not 0 < cpus <= 1024 or processes < 8:
        raise CannotStart(
            "The limits must be at least --memory-mb 64, --max-processes 8 and --cpus above 0."
        )
    limits = Limits(memory_bytes=memory * MIB, cpus=cpus, processes=processes)
    return RunnerFolder(root, allow_net=options["allow_net"], closed=(home,), limits=limits)


def access_control(options: dict[str, Any]) -> AccessControl:
    """Return the access control of the runner.

    Raises:
        CannotStart: The token is too weak, or missing although other machines can connect.
    """
    token, host = options["token"] or os.environ.pop(TOKEN, "") or None, options["host"]
    if token is not None and (len(token) < TOKEN_MIN or not token.isascii() or " " in token):
        raise CannotStart(
            f"The token must have at least {TOKEN_MIN} ASCII characters without spaces. Create one:"
            " `python3 -c 'import secrets; print(secrets.token_urlsafe(32))'`."
        )
    is_open = not is_loopback(host)
    if is_open and token is None:
        raise CannotStart(
            f"Other machines can connect to {host} and execute commands here. Set {TOKEN}, or"
            " listen on 127.0.0.1."
        )
    return AccessControl(token, names=[*options["names"], host], is_open=is_open)


def isolation_of(options: dict[str, Any], folder: RunnerFolder) -> Isolation:
    """Return the requested isolation; there is no fallback to another one.

    Raises:
        IsolationMissing: It is not available on this machine.
    """
    if options["isolation"] == "process":
        return ProcessIsolation(folder)
    if options["isolation"] == "bubblewrap":
        return BubblewrapIsolation(folder)
    # Docker's SDK takes a while to import, and nothing else of the runner needs it.
    from runners.docker_runner.isolation.containers import ContainerIsolation

    return ContainerIsolation(folder, options["image"])


def _announce(options: dict[str, Any], folder: RunnerFolder, port: int) -> None:
    if options["isolation"] == "process":
        sys.stderr.write(
            "WARNING: --isolation process does not isolate commands: they can do everything that"
            " you can. For development only.\n"
        )
    if folder.allow_net:
        reached = (
            "everything that the engine's machine can, including services that listen on its"
            " addresses"
            if options["isolation"] == "docker"
            else "everything that this machine can, including its own services"
        )
        sys.stderr.write(
            f"WARNING: with --allow-net commands can connect to {reached}; only http.request is"
            " limited to public addresses.\n"
        )
    host = f"[{options['host']}]" if ":" in options["host"] else options["host"]
    sys.stdout.write(
        f"docker-runner on http://{host}:{port}, isolation {options['isolation']},"
        f" network {'on' if folder.allow_net else 'off'}, folder {folder.root}\n"
    )
    sys.stdout.flush()
