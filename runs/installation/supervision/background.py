"""Start the stack in the background."""

from __future__ import annotations

import os
import subprocess
import time

from runs.installation.home.errors import StackError
from runs.installation.home.paths import HomePaths
from runs.installation.home.start import START_TIMEOUT_S
from runs.installation.home.state import StackInfo, live_info
from runs.installation.supervision.logs import open_log
from runs.installation.supervision.service_definitions import manage_command


def start_in_background(paths: HomePaths, port: int | None) -> StackInfo:
    """Start a supervisor in a session of its own and return its stack when it is ready.

    If a stack is up already, or another process starts one first, that one is returned.

    Raises:
        StackError: The supervisor ended before it was ready; the message is its output.
    """
    log = paths.log("up")
    log_fd = open_log(log)
    size_before = os.fstat(log_fd).st_size
    try:
        supervisor = subprocess.Popen(
            manage_command(
                "up", "--detached", *(["--port", str(port)] if port is not None else [])
            ),
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            start_new_session=True,
        )
    finally:
        os.close(log_fd)
    deadline = time.monotonic() + START_TIMEOUT_S
    while (info := live_info(paths)) is None:
        if supervisor.poll() not in {None, 0}:
            with log.open(errors="replace") as file:
                file.seek(size_before)
                raise StackError(file.read().strip() or f"The stack did not start; see {log}.")
        if time.monotonic() > deadline:
            raise StackError(f"The stack was not ready within {START_TIMEOUT_S:.0f} s; see {log}.")
        time.sleep(0.03)
    return info
