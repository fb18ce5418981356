"""Run the supervisor of a home's stack in this process, or attach to the stack that is up."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.conf import settings

from runs.operations.home.damage import refuse_damage
from runs.operations.home.errors import StackError
from runs.operations.home.listen import FIRST_PORT, listen
from runs.operations.home.locks import membership
from runs.operations.home.paths import HomePaths
from runs.operations.home.prepare import prepare_home
from runs.operations.home.safety import refuse_unsafe_start
from runs.operations.home.state import StackInfo, is_up, stack_info
from runs.operations.supervision.active_runs import is_work_left
from runs.operations.supervision.beginning import (
    Start,
    StopRequested,
    await_ready,
    begin_start,
    on_signals,
    raise_stop,
)
from runs.operations.supervision.idle import IdleRule
from runs.operations.supervision.liveness import WorkerProbe
from runs.operations.supervision.service_definitions import (
    define_services,
    remove_socket_folder,
)
from runs.operations.supervision.supervisor import Report, Supervisor

_POLL_S = 0.2


@dataclass(frozen=True)
class UpOptions:
    """The options of `manage.py up`.

    Attributes:
        lock_fd: the stack's lock, which the supervisor of `up --background` inherits; else None.
        once: stop after the job.
        job: called with the stack's address when it is ready; returns whether it succeeded.
    """

    port: int | None = None
    lock_fd: int | None = None
    once: bool = False
    job: Callable[[str], bool] | None = None

    @property
    def background(self) -> bool:
        """Return whether this is the supervisor of `up --background`."""
        return self.lock_fd is not None

    def run_job(self, url: str, report: Report) -> bool | None:
        """Run the job; return its result if the stack is to stop now, else None."""
        succeeded = self.job(url) if self.job else True
        if self.once:
            return succeeded
        if self.job:
            report(f"Serving on {url} until Ctrl-C.")
        return None


def supervise_or_attach(paths: HomePaths, options: UpOptions, report: Report) -> bool:
    """Supervise the stack of this home, or attach to the one that is up, until a signal.

    If the stack it is attached to ends with its terminal, it starts the stack here. Returns the
    result of the job with `once`, else True.

    Raises:
        StackError: The stack cannot be started; services that had started are stopped.
    """
    on_signals(raise_stop)
    try:
        while True:
            with begin_start(
                paths, background=options.background, lock_fd=options.lock_fd
            ) as start:
                if start is not None:
                    _prepare(options, report)
                    return _supervise(paths, start, options, report)
            result = _attach(paths, options, report)
            if result is not None:
                return result
    except KeyboardInterrupt:
        return not options.once


def _prepare(options: UpOptions, report: Report) -> None:
    try:
        prepare_home()
        if options.lock_fd is None:  # else the parent process has checked it
            refuse_damage()
    except StopRequested:
        report("Stopped before the stack was ready; nothing is left running.")
        raise


def _supervise(paths: HomePaths, start: Start, options: UpOptions, report: Report) -> bool:
    with contextlib.ExitStack() as stack:
        refuse_unsafe_start("127.0.0.1")
        stack.callback(remove_socket_folder, paths)
        listener = stack.enter_context(listen(options.port))
        host, port = listener.getsockname()[:2]
        url = f"http://{host}:{port}"
        if options.port is None and port != FIRST_PORT:
            report(f"  Port {FIRST_PORT} is in use, so this stack listens on {port}.")
        rule = IdleRule(paths, idle_s=settings.IDLE_STOP_S, has_active_runs=is_work_left)
        if not options.background:
            stack.enter_context(membership(paths))
        supervisor = Supervisor(
            paths,
            define_services(paths, listener, WorkerProbe()),
            start=start,
            url=url,
            background=options.background,
            report=report,
            model=settings.LLM.label,
            should_stop=rule.should_stop if options.background else None,
        )
        with _started(supervisor, report):
            result = options.run_job(url, report)
            if result is None:
                supervisor.ended.wait()
                if not supervisor.is_idle:
                    raise StackError("The supervisor itself failed, which is a defect; see above.")
                report("The stack has been idle: no members, calls or runs.")
            return result is not False


@contextlib.contextmanager
def _started(supervisor: Supervisor, report: Report) -> Iterator[None]:
    """Keep the stack up during a block. A signal during the stop kills what has not ended."""
    final = False
    started_at = time.monotonic()
    try:
        supervisor.start()
        took_s = time.monotonic() - started_at
        report(f"Ready on {supervisor.url} after {took_s:.1f} s. Ctrl-C stops it.")
        yield
    except StopRequested as stop:
        final = stop.number == signal.SIGTERM
        report("")  # the terminal has shown ^C on this line
        raise
    finally:
        on_signals(lambda number, frame: supervisor.kill_now())
        started_at = time.monotonic()
        report("Stopping …")
        supervisor.stop(final=final)
        report(f"Stopped, nothing is left running ({time.monotonic() - started_at:.1f} s).")


def _attach(paths: HomePaths, options: UpOptions, report: Report) -> bool | None:
    """Be a member of another supervisor's stack until it ends; None if it has to start here."""
    with membership(paths):
        info = await_ready(paths)
        if info is None:
            return None
        prepare_home()
        report(_describe_attached(info, options))
        result = options.run_job(info.url, report)
        if result is not None:
            return result
        while is_up(paths):
            time.sleep(_POLL_S)
    last = stack_info(paths)
    if last is not None and last.state == "stopped":
        report("The stack was stopped with `manage.py down`.")
        return True
    report("The stack has ended; starting it here.")
    return None


def _describe_attached(info: StackInfo, options: UpOptions) -> str:
    end = "Ctrl-C leaves it running." if info.background else "It ends with that terminal."
    text = (
        f"A stack of this home is up already: {info.url} ({info.mode}, process {info.pid}).\n"
        f"Attached to it. {end}"
    )
    if options.port is not None and not info.url.endswith(f":{options.port}"):
        text += f"\n--port {options.port} has no effect; `manage.py down` stops the other one."
    return text
