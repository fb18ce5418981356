"""Be the supervisor of a home's stack, or stand by the one that has it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

from django.conf import settings

from runs.installation.home.errors import StackError
from runs.installation.home.listen import FIRST_PORT, listen
from runs.installation.home.locks import Membership, try_lock
from runs.installation.home.paths import HomePaths
from runs.installation.home.safety import refuse_unsafe_start
from runs.installation.home.state import StackInfo, is_up, live_info, stack_info
from runs.installation.supervision.active_runs import is_work_left
from runs.installation.supervision.idle import IdleRule
from runs.installation.supervision.liveness import WorkerProbe
from runs.installation.supervision.service_definitions import (
    define_services,
    remove_socket_folder,
    service_environment,
)
from runs.installation.supervision.supervisor import Report, Supervisor

_LOOK_EVERY_S = 0.2
_JOIN_TIMEOUT_S = 90.0


class StopRequested(KeyboardInterrupt):
    """A signal asked for the end; raised in the main thread, wherever that is."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@dataclass(frozen=True)
class UpOptions:
    """What `manage.py up` was asked for; `job` gets the address of the stack once that is ready."""

    port: int | None = None
    background: bool = False
    once: bool = False
    job: Callable[[str], bool] | None = None

    def do_job(self, url: str, say: Report) -> bool | None:
        """Do the job; return how it went when nothing else was asked for, else None."""
        went_well = self.job(url) if self.job else True
        if self.once:
            return went_well
        if self.job:
            say(f"Serving on {url} until Ctrl-C.")
        return None


def supervise_or_attach(at: HomePaths, wish: UpOptions, say: Report) -> bool:
    """Supervise the stack of this home, or attach to the one that lives, until asked to end.

    When the one that it is attached to ends with another terminal, it takes over. Returns how the
    job went when nothing else was asked for, else True.

    Raises:
        StackError: The stack cannot be started; what had been started is stopped.
    """
    _on_signals(_raise_stop)
    try:
        while True:
            lock_fd = try_lock(at.stack_lock)
            if lock_fd is not None:
                return _supervise(at, lock_fd, wish, say)
            answer = _await_other(at) if wish.background else _attach(at, wish, say)
            if answer is not None:
                return answer
    except KeyboardInterrupt:
        return not wish.once


def _supervise(at: HomePaths, lock_fd: int, wish: UpOptions, say: Report) -> bool:
    with contextlib.ExitStack() as held:
        held.callback(os.close, lock_fd)
        refuse_unsafe_start("127.0.0.1")
        held.callback(remove_socket_folder, at)
        listener = held.enter_context(listen(wish.port))
        host, port = listener.getsockname()[:2]
        url = f"http://{host}:{port}"
        if wish.port is None and port != FIRST_PORT:
            say(f"  Port {FIRST_PORT} is in use, so this stack listens on {port}.")
        rule = IdleRule(at, idle_s=settings.IDLE_STOP_S, has_active_runs=is_work_left)
        if not wish.background:
            held.enter_context(Membership(at))
        supervisor = Supervisor(
            at,
            define_services(at, listener, WorkerProbe()),
            lock_fd=lock_fd,
            url=url,
            background=wish.background,
            report=say,
            env=service_environment(listener),
            model=settings.LLM.label,
            should_stop=rule.should_stop if wish.background else None,
        )
        with _started(supervisor, say):
            answer = wish.do_job(url, say)
            if answer is None:
                supervisor.ended.wait()
                if not supervisor.is_idle:
                    raise StackError(
                        "The supervisor itself failed, which is a defect; see above."
                    )
                say("Nobody needed it for a while.")
            return answer is not False


@contextlib.contextmanager
def _started(supervisor: Supervisor, say: Report) -> Iterator[None]:
    """Have the stack up for the length of a block; a signal during the stop ends the patience."""
    final = False
    began = time.monotonic()
    try:
        supervisor.start()
        say(f"Ready on {supervisor.url} after {time.monotonic() - began:.1f} s. Ctrl-C stops it.")
        yield
    except StopRequested as stop:
        final = stop.number == signal.SIGTERM
        say("")  # the terminal has shown ^C on this line
        raise
    finally:
        _on_signals(lambda number, frame: supervisor.hurry())
        began = time.monotonic()
        say("Stopping …")
        supervisor.stop(final=final)
        say(f"Stopped, nothing is left running ({time.monotonic() - began:.1f} s).")


def _attach(at: HomePaths, wish: UpOptions, say: Report) -> bool | None:
    """Be a member of somebody else's stack until it ends or we do; None when there is none."""
    with Membership(at):
        info = _await_ready(at)
        if info is None:
            return None
        say(_attached_words(info, wish))
        answer = wish.do_job(info.url, say)
        if answer is not None:
            return answer
        while is_up(at):
            time.sleep(_LOOK_EVERY_S)
    last = stack_info(at)
    if last is not None and last.state == "stopped":
        say("The stack was stopped with `manage.py down`.")
        return True
    say("The stack has ended; starting it here.")
    return None


def _attached_words(info: StackInfo, wish: UpOptions) -> str:
    end = "Ctrl-C leaves it running." if info.background else "It ends with that terminal."
    words = (
        f"A stack of this home is up already: {info.url} ({info.mode}, process {info.pid}).\n"
        f"Attached to it. {end}"
    )
    if wish.port is not None and not info.url.endswith(f":{wish.port}"):
        words += f"\n--port {wish.port} has no effect; `manage.py down` ends the other one."
    return words


def _await_other(at: HomePaths) -> bool | None:
    """Leave the field to another supervisor that gets ready; None when it went instead."""
    return None if _await_ready(at) is None else True


def _await_ready(at: HomePaths) -> StackInfo | None:
    """Wait for a stack that is coming; None as soon as nobody holds the stack's lock."""
    deadline = time.monotonic() + _JOIN_TIMEOUT_S
    while is_up(at):
        info = live_info(at)
        if info is not None:
            return info
        if time.monotonic() > deadline:
            raise StackError(
                f"Something of a stack holds {at.stack_lock}, but does not get ready."
                " `manage.py down` ends it."
            )
        time.sleep(0.05)
    return None


def _on_signals(handler: Callable[[int, FrameType | None], object]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def _raise_stop(number: int, frame: FrameType | None) -> None:
    raise StopRequested(number)
