"""The beginning of a start: take the stack's lock and record the start, before anything else."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import FrameType

from runs.operations.home.errors import StackError, StoppedMeanwhile
from runs.operations.home.locks import try_lock
from runs.operations.home.paths import HomePaths
from runs.operations.home.prepare import create_folders
from runs.operations.home.state import (
    StackInfo,
    birth,
    is_up,
    live_info,
    stack_info,
    write_state,
)

START_TIMEOUT_S = 90.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(KeyboardInterrupt):
    """A signal requested the stop. Raised in the main thread, wherever that is."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@dataclass(frozen=True)
class Start:
    """A start that this process has begun.

    Attributes:
        lock_fd: the descriptor of the stack's lock; child processes can inherit it.
        began_at: Unix time; the supervisor of `up --background` keeps that of the command.
    """

    lock_fd: int
    began_at: float


@contextlib.contextmanager
def begin_start(
    paths: HomePaths, *, background: bool, lock_fd: int | None = None
) -> Iterator[Start | None]:
    """Take the stack's lock and write a starting stack.json with this process; None if another
    process holds the lock.

    From here on `manage.py down` finds the start and ends it. If the block ends with an exception,
    stack.json is removed; after SIGTERM, or a SIGTERM of its supervisor, it says stopped.

    Args:
        lock_fd: the lock that `up --background` holds and its supervisor inherits.

    Raises:
        HomeUnusable: The home cannot be created or written.
    """
    began_at = time.time()
    if lock_fd is None:
        create_folders(paths)
        lock_fd = try_lock(paths.stack_lock)
        if lock_fd is None:
            yield None
            return
    else:
        os.set_inheritable(lock_fd, False)
        recorded = stack_info(paths)
        began_at = recorded.started_at if recorded else began_at
    own = StackInfo(
        state="starting",
        background=background,
        pid=os.getpid(),
        birth=birth(os.getpid()),
        url="",
        started_at=began_at,
    )
    try:
        with contextlib.suppress(OSError):  # a full disk is reported by what follows
            write_state(paths, own)
        yield Start(lock_fd, began_at)
    except BaseException as problem:
        is_final = isinstance(problem, StoppedMeanwhile) or (
            isinstance(problem, StopRequested) and problem.number == signal.SIGTERM
        )
        with contextlib.suppress(OSError):
            if is_final:
                write_state(paths, replace(own, state="stopped"))
            else:
                paths.state.unlink(missing_ok=True)
        raise
    finally:
        os.close(lock_fd)


def await_ready(paths: HomePaths) -> StackInfo | None:
    """Wait for the stack that another process starts; None if it stops, or failed to start.

    Raises:
        StoppedMeanwhile: `manage.py down` ended the start.
        StackError: It is not ready within START_TIMEOUT_S.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    was_starting = False
    while is_up(paths):
        info = live_info(paths)
        if info is not None:
            return info
        recorded = stack_info(paths)
        was_starting |= recorded is not None and recorded.state == "starting"
        if time.monotonic() > deadline:
            raise StackError(
                f"A process of a stack holds {paths.stack_lock} but the stack does not become"
                " ready. `manage.py down` stops it."
            )
        time.sleep(0.05)
    recorded = stack_info(paths)
    if was_starting and recorded is not None and recorded.state == "stopped":
        raise StoppedMeanwhile
    return None


def on_signals(handler: Callable[[int, FrameType | None], object]) -> None:
    """Handle the signals that stop a stack, also if the parent process has blocked them."""
    for number in STOP_SIGNALS:
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)


def raise_stop(number: int, frame: FrameType | None) -> None:
    """Raise StopRequested: the handler of a process that starts the stack."""
    raise StopRequested(number)
