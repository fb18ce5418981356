"""Start the stack in the background."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from runs.operations.home.damage import refuse_damage
from runs.operations.home.errors import StackError, StoppedMeanwhile
from runs.operations.home.paths import HomePaths
from runs.operations.home.prepare import prepare_home
from runs.operations.home.state import StackInfo, live_info
from runs.operations.supervision.beginning import (
    START_TIMEOUT_S,
    STOP_SIGNALS,
    Start,
    await_ready,
    begin_start,
    on_signals,
    raise_stop,
)
from runs.operations.supervision.logs import open_log
from runs.operations.supervision.service_definitions import manage_command

_STOP_TIMEOUT_S = 15.0


def start_in_background(paths: HomePaths, port: int | None) -> StackInfo:
    """Start a supervisor in a session of its own and return its stack when it is ready.

    If another process starts the stack, this one waits until that stack is ready. If a signal ends
    the wait, so does the start.

    Raises:
        HomeUnusable, MigrationsMissing, DatabaseDamaged: See `prepare_home`, `refuse_damage`.
        StoppedMeanwhile: `manage.py down` ended the start.
        StackError: The supervisor ended before it was ready; the message is its output.
    """
    on_signals(raise_stop)
    while True:
        with begin_start(paths, background=True) as start:
            if start is not None:
                prepare_home()
                refuse_damage()
                return _start_supervisor(paths, start, port)
        info = await_ready(paths)
        if info is not None:
            return info


def _start_supervisor(paths: HomePaths, start: Start, port: int | None) -> StackInfo:
    log = paths.log("up")
    log_fd = open_log(log)
    size_before = os.fstat(log_fd).st_size
    arguments = ["up", "--detached", str(start.lock_fd)]
    if port is not None:
        arguments += ["--port", str(port)]
    # A signal is handled once the supervisor is known, which `on_signals` of the supervisor and the
    # next statement allow again.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        supervisor = subprocess.Popen(
            manage_command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=log_fd,
            stderr=log_fd,
            pass_fds=[start.lock_fd],
            start_new_session=True,
        )
    finally:
        os.close(log_fd)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        deadline = time.monotonic() + START_TIMEOUT_S
        while (info := live_info(paths)) is None:
            if (status := supervisor.poll()) in {0, -signal.SIGTERM}:
                raise StoppedMeanwhile
            if status is not None:
                with log.open(errors="replace") as file:
                    file.seek(size_before)
                    raise StackError(file.read().strip() or f"The stack did not start; see {log}.")
            if time.monotonic() > deadline:
                raise StackError(
                    f"The stack was not ready within {START_TIMEOUT_S:.0f} s, and was stopped;"
                    f" see {log}."
                )
            time.sleep(0.03)
    except BaseException:
        _stop(supervisor)
        raise
    return info


def _stop(supervisor: subprocess.Popen[bytes]) -> None:
    supervisor.terminate()
    try:
        supervisor.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        supervisor.kill()  # its watcher ends the services
        supervisor.wait()
