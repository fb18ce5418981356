"""`manage.py up`: start the embedded stack."""

from __future__ import annotations

import signal
import sys
import time
from argparse import SUPPRESS, ArgumentParser
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from runs.operations.home.errors import StackError
from runs.operations.home.paths import HomePaths, home_paths
from runs.operations.home.prepare import prepare_home
from runs.operations.home.state import live_info
from runs.operations.supervision.background import start_in_background
from runs.operations.supervision.beginning import StopRequested
from runs.operations.supervision.foreground import UpOptions, supervise_or_attach

DEMO_TIMEOUT_S = 180.0


class Command(BaseCommand):
    """Starts redis, web, worker and scheduler, and supervises them until Ctrl-C."""

    help = (
        "Start everything on this machine and run until Ctrl-C; a second one attaches to the first."
        " --background leaves it running until it is idle."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the port, the mode and the demo."""
        parser.add_argument(
            "--port",
            type=int,
            help="port of the web service (default: first free from 8000)",
        )
        parser.add_argument("--background", action="store_true", help="return once it is ready")
        parser.add_argument("--demo", action="store_true", help="run the demo when it is ready")
        parser.add_argument(
            "--once",
            action="store_true",
            help="stop after the demo (default without a terminal)",
        )
        parser.add_argument("--detached", type=int, metavar="LOCK_FD", help=SUPPRESS)

    def handle(self, *args: Any, **options: Any) -> None:
        """Start the stack or attach to it. Exit 0 on success, 1 with an error message."""
        paths = home_paths()
        is_detached = options["detached"] is not None
        try:
            if options["background"]:
                self._in_background(paths, options["port"])
                return
            is_once = options["once"] or (options["demo"] and not _has_terminal())
            up_options = UpOptions(
                port=options["port"],
                lock_fd=options["detached"],
                once=is_once,
                job=partial(_demo, once=is_once) if options["demo"] else None,
            )
            report = _print_log_line if is_detached else _print_line
            report(f"Continuity, home {paths.home}")
            succeeded = supervise_or_attach(paths, up_options, report)
        except StackError as problem:
            self.stderr.write(str(problem))
            sys.exit(1)
        except KeyboardInterrupt as stop:
            self.stderr.write("Stopped before the stack was ready; nothing is left running.")
            is_final = isinstance(stop, StopRequested) and stop.number == signal.SIGTERM
            sys.exit(1 if is_final else 130)
        if not succeeded:
            sys.exit(1)

    def _in_background(self, paths: HomePaths, port: int | None) -> None:
        info = live_info(paths)
        began = time.monotonic()
        if info is not None:
            prepare_home()
            self.stdout.write(f"Up already, in the {info.mode}: {info.url} (process {info.pid}).")
            if port is not None and not info.url.endswith(f":{port}"):
                self.stdout.write(f"--port {port} has no effect; `manage.py down` stops that one.")
            return
        info = start_in_background(paths, port)
        self.stdout.write(
            f"Up in the background after {time.monotonic() - began:.1f} s: {info.url}"
            f" (process {info.pid}). `manage.py down` stops it;"
            f" it stops by itself after {settings.IDLE_STOP_S / 60:g} minutes without hosts, calls"
            " and runs."
        )


def _demo(url: str, *, once: bool) -> bool:
    # Imported here: takes a tenth of a second that only the demo needs.
    from rich.console import Console

    from runs.operations.demo.job import run_demo

    return run_demo(base_url=None if once else url, console=Console(), timeout_s=DEMO_TIMEOUT_S)


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _print_line(line: str) -> None:
    """Print to the current sys.stdout, which the demo's display replaces for a while."""
    print(line, flush=True)


def _print_log_line(line: str) -> None:
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}", flush=True)
