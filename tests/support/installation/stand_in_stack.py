"""Run stand-in services under the real supervisor, in a separate process that tests may kill.

`python -m tests.support.installation.stand_in_stack HOME [SERVICE=SHELL-COMMAND …]` prints the
reports of the supervisor.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from runs.operations.home.errors import StackError
from runs.operations.home.locks import try_lock
from runs.operations.home.paths import HomePaths
from runs.operations.supervision.beginning import Start
from runs.operations.supervision.services import Service
from runs.operations.supervision.supervisor import Supervisor

# `worker` starts a child in its own session, as Playwright does with Chromium.
SERVICES = {
    "redis": "exec sleep 600",
    "web": "exec sleep 600",
    "worker": "setsid sleep 600 & exec sleep 600",
}


def main(home: str, *changes: str) -> int:
    """Run the stand-in services until SIGTERM.

    Returns 4 if another process uses the home, and 1 if a service fails to start.
    """
    paths = HomePaths(Path(home))
    lock_fd = try_lock(paths.stack_lock)
    if lock_fd is None:
        return 4
    supervisor = Supervisor(
        paths,
        [stand_in(paths, name, shell) for name, shell in ({**SERVICES, **_named(changes)}).items()],
        start=Start(lock_fd, time.time()),
        url="http://stand-in",
        background=False,
        report=lambda line: print(line, flush=True),  # noqa: T201
        health_check_s=0.2,
    )
    signal.signal(signal.SIGTERM, lambda *_: supervisor.ended.set())
    try:
        supervisor.start()
        print("ready", flush=True)  # noqa: T201
        supervisor.ended.wait()
    except StackError as problem:
        print(problem, flush=True)  # noqa: T201
        return 1
    finally:
        supervisor.stop(final=True)
    return 0


def stand_in(paths: HomePaths, name: str, shell: str) -> Service:
    """Return a service that is healthy as long as the file HOME/NAME.unhealthy does not exist."""
    unhealthy = paths.home / f"{name}.unhealthy"
    return Service(
        name=name,
        argv=("/bin/sh", "-c", shell),
        env=os.environ,
        where="stand-in",
        is_ready=lambda pid: True,
        unhealthy_reason=lambda pid: "is unhealthy" if unhealthy.exists() else None,
    )


def _named(changes: tuple[str, ...]) -> dict[str, str]:
    return dict(change.split("=", 1) for change in changes)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
