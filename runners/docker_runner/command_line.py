"""`manage.py docker_runner`: what can be asked for, and what is said before anything is served.

manage.py comes here without Django: a machine of hands has no database, and no settings to fail.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from decisions.security.loopback import is_loopback
from runners.docker_runner.access import Gatekeeper
from runners.docker_runner.app import RunnerApp
from runners.docker_runner.errors import CannotStart
from runners.docker_runner.isolation.base import MIB, Isolation, Limits, Place
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
    add("--root", required=True, type=Path, help="the folder that tools work in, and nothing else")
    add("--port", type=int, default=PORT, help=f"port ({PORT}); 0 takes a free one")
    add("--host", default="127.0.0.1", help="address (127.0.0.1); any other needs a token")
    add(
        "--isolation",
        choices=("bubblewrap", "docker", "process"),
        default="bubblewrap",
        help="how commands are kept apart (bubblewrap); process: not at all, for development",
    )
    add(
        "--token",
        help=f"what callers have to bring; better in {TOKEN}: every user of this"
        " machine can read a command line",
    )
    add("--allow-net", action="store_true", help="let commands and http.request use the network")
    add(
        "--name",
        action="append",
        default=[],
        dest="names",
        metavar="HOST",
        help="a host name that callers reach this runner by, besides localhost; repeatable",
    )
    add(
        "--image",
        default=os.environ.get(IMAGE, "") or DEFAULT_IMAGE,
        help=f"image of containers, also {IMAGE} ({DEFAULT_IMAGE})",
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
    """Serve until told to end; return the exit status."""
    try:
        place, gatekeeper = place_of(options), gatekeeper_of(options)
        isolation = isolation_of(options, place)
        asyncio.run(isolation.check())
        listener = listen(options["host"], options["port"])
    except CannotStart as reason:
        sys.stderr.write(f"{reason}\n")
        return 1
    with listener:
        _announce(options, place, listener.getsockname()[1])
        serve(RunnerApp(place, isolation, options["isolation"], gatekeeper), listener)
    return 0


def place_of(options: dict[str, Any]) -> Place:
    """Return where commands run.

    Raises:
        CannotStart: There is no such folder, it holds what no command may see, or a limit is none.
    """
    try:
        root = options["root"].expanduser().resolve(strict=True)
        if not root.is_dir():
            raise NotADirectoryError
    except (OSError, RuntimeError):
        raise CannotStart(f"--root {options['root']} is no folder. Make it first.") from None
    home = (
        Path(os.environ.get("CONTINUITY_HOME") or _PROJECT / ".continuity").expanduser().resolve()
    )
    if home.is_relative_to(root) or root.is_relative_to(home):
        raise CannotStart(
            f"--root {root} and CONTINUITY_HOME ({home}) overlap, and no command may see the keys"
            " and the database there. Choose a folder of its own."
        )
    try:
        allowed_networks()
    except ValueError as error:
        raise CannotStart(f"CONTINUITY_EGRESS_ALLOW: {error}") from None
    memory, cpus, processes = (options[name] for name in ("memory_mb", "cpus", "max_processes"))
    if memory < 64 or not 0 < cpus <= 1024 or processes < 8:
        raise CannotStart(
            "Commands need at least --memory-mb 64, --max-processes 8 and some --cpus."
        )
    limits = Limits(memory_bytes=memory * MIB, cpus=cpus, processes=processes)
    return Place(root, allow_net=options["allow_net"], closed=(home,), limits=limits)


def gatekeeper_of(options: dict[str, Any]) -> Gatekeeper:
    """Return who guards the doors.

    Raises:
        CannotStart: The token can be guessed, or others could reach the runner without one.
    """
    token, host = options["token"] or os.environ.pop(TOKEN, "") or None, options["host"]
    if token is not None and (len(token) < TOKEN_MIN or not token.isascii() or " " in token):
        raise CannotStart(
            f"The token needs {TOKEN_MIN} characters or more, ASCII and without blanks. Make one:"
            " `python3 -c 'import secrets; print(secrets.token_urlsafe(32))'`."
        )
    is_open = not is_loopback(host)
    if is_open and token is None:
        raise CannotStart(
            f"{host} can be reached from other machines, who could then execute commands here. Set"
            f" {TOKEN}, or listen on 127.0.0.1."
        )
    return Gatekeeper(token, names=[*options["names"], host], is_open=is_open)


def isolation_of(options: dict[str, Any], place: Place) -> Isolation:
    """Return how commands are kept apart: as asked for, and never otherwise.

    Raises:
        IsolationMissing: It cannot be had here.
    """
    if options["isolation"] == "process":
        return ProcessIsolation(place)
    if options["isolation"] == "bubblewrap":
        return BubblewrapIsolation(place)
    # Docker's SDK takes a while to import, and nothing else of the runner needs it.
    from runners.docker_runner.isolation.containers import ContainerIsolation

    return ContainerIsolation(place, options["image"])


def _announce(options: dict[str, Any], place: Place, port: int) -> None:
    if options["isolation"] == "process":
        sys.stderr.write(
            "WARNING: --isolation process keeps commands apart from nothing: they can do all that"
            " you can. For development only.\n"
        )
    if place.allow_net and options["isolation"] != "docker":
        sys.stderr.write(
            "WARNING: with --allow-net commands reach whatever this machine reaches, also what"
            " listens on it; only http.request is held to public addresses.\n"
        )
    host = f"[{options['host']}]" if ":" in options["host"] else options["host"]
    sys.stdout.write(
        f"docker-runner on http://{host}:{port}, isolation {options['isolation']},"
        f" network {'on' if place.allow_net else 'off'}, folder {place.root}\n"
    )
    sys.stdout.flush()
