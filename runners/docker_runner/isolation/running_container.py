"""One container, and the thread that owns it: it creates the container, copies the output and
removes the container again, whatever becomes of the caller meanwhile.

Docker's SDK blocks, and a blocked call cannot be cancelled; what the caller cancels is only its own
waiting. If this process dies, the engine closes the container's stdin, which ends the command;
if it dies before it knows that the container has started, the command is not executed.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from docker.errors import APIError, DockerException, NotFound
from docker.utils.socket import frames_iter

from runners.docker_runner.errors import CommandInterrupted, CommandNotStarted, RunnerToolFailed
from runners.docker_runner.isolation.base import Command
from runners.processes.supervised import Piece

ENGINE_S = 20.0  # for one request to the engine, except the output
DEADLINE_GRACE_S = 5  # after its time limit, a command ends itself
CONFIRM_S = 30  # for the runner's line that confirms the start: longer than it waits for the engine
CONFIRMED = b"started\n"
PIECES = 8  # read ahead of the caller
# Executed by the image's /bin/sh, with the time limit, the command line and CONFIRM_S as arguments.
# Descriptor 3 is the runner's connection. It sends one line once it knows that the container has
# started: an engine never ends the stdin of a container whose client was gone before the start.
# After that line the connection's end means that the runner is gone. The end of process $$ ends the
# container with all its processes.
BOOT = """
exec 3<&0 </dev/null
if timeout -s KILL 9 true 2>/dev/null; then
    timeout -s KILL "$3" /bin/sh -c 'read -r _' <&3 || exit 125
else
    read -r _ <&3 || exit 125
fi
shell=/bin/sh
for one in /usr/local/bin/bash /usr/bin/bash /bin/bash; do
    if [ -x "$one" ]; then shell=$one; fi
done
{ read -r _ <&3; kill -KILL $$; } >/dev/null 2>&1 &
exec 3<&-
if timeout -s KILL 9 true 2>/dev/null; then exec timeout -s KILL "$1" "$shell" -c "$2"; fi
exec "$shell" -c "$2"
"""
ENGINE_ERRORS = (DockerException, OSError)  # those of `requests` are OSErrors


def boot_command(command: Command) -> list[str]:
    """Return the container's command: its time limit, bash if the image has it, and the line."""
    deadline = math.ceil(command.timeout_s) + DEADLINE_GRACE_S
    return ["/bin/sh", "-c", BOOT, "command", str(deadline), command.line, str(CONFIRM_S)]


def engine_error_text(error: Exception) -> str:
    """Return the engine's error message on one line."""
    text = error.explanation if isinstance(error, APIError) else error
    return " ".join(str(text or error).split())[:300].rstrip(".")


class RunningContainer:
    """A command in a container; see `Running`.

    Args:
        request: the arguments of the SDK's `create_container`.
        leave: receives the container's name, if it may exist after this call.
    """

    def __init__(
        self, engine: Any, request: Mapping[str, Any], leave: Callable[[str], None]
    ) -> None:
        self._engine, self._request, self._leave = engine, request, leave
        self._name = str(request["name"])
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[None] = self._loop.create_future()
        self._exit: asyncio.Future[int] = self._loop.create_future()
        self._ended: asyncio.Future[bool] = self._loop.create_future()
        self._pieces: asyncio.Queue[Piece | None] = asyncio.Queue()
        self._room = threading.Semaphore(PIECES)
        self._stop = threading.Event()
        self._has_exited = False
        self._connection: Any = None  # the SDK's object, which keeps the socket open
        self._socket: socket.socket | None = None
        # A thread that waits for an engine that hangs must not keep the runner from its end.
        self._owner = threading.Thread(target=self._own, name=self._name, daemon=True)

    async def start(self) -> RunningContainer:
        """Start the command.

        Raises:
            CommandNotStarted: The engine refused; nothing was executed.
            CommandInterrupted: The engine did not answer in time.
        """
        self._owner.start()
        try:
            await asyncio.shield(self._started)
        except BaseException:
            await self.end()
            raise
        return self

    async def pieces(self) -> AsyncIterator[Piece]:
        """Yield what it prints until its end."""
        while (piece := await self._pieces.get()) is not None:
            self._room.release()
            yield piece

    async def wait(self) -> int:
        """Return the exit status of its command.

        Raises:
            CommandInterrupted: The engine stopped, so the command's end is unknown.
        """
        return await asyncio.shield(self._exit)

    async def end(self) -> None:
        """Remove the container with whatever runs in it.

        Raises:
            CommandInterrupted: The engine does not answer, and the command had not ended.
        """
        self._stop.set()
        self._room.release(PIECES)
        self._disconnect()
        is_removed = await asyncio.shield(self._ended)
        is_started = self._started.done() and self._started.exception() is None
        if is_started and not is_removed and not self._has_exited:
            raise CommandInterrupted(
                "The Docker engine does not answer, so the command could not be ended yet: it ends"
                " itself at its time limit, and its effect is unknown."
            )

    # --- the owner thread -------------------------------------------------------------------------

    def _own(self) -> None:
        """Create, run and remove the container."""
        is_removed = False
        try:
            try:
                self._run()
            except RunnerToolFailed as error:
                self._fail(error)
            finally:
                is_removed = self._remove()
        finally:
            # If nothing was reported yet, the thread failed.
            self._fail(CommandInterrupted("The call of the Docker engine failed unexpectedly."))
            self._tell(self._pieces.put_nowait, None)
            self._resolve(self._ended, is_removed)

    def _run(self) -> None:
        self._begin()
        self._copy_output()
        if not self._stop.is_set():
            with _interrupted():
                result = self._engine.wait(self._name, timeout=ENGINE_S)
            self._has_exited = True
            self._resolve(self._exit, int(result["StatusCode"]))

    def _begin(self) -> None:
        """Connect, then start, so that no output is missed."""
        with _not_started():
            self._create()
            if not self._stop.is_set():
                self._connect()
        if self._stop.is_set():
            raise CommandNotStarted("The call ended before its container was started.")
        try:
            self._engine.start(self._name)
            if self._socket is not None:
                self._socket.sendall(CONFIRMED)
        except APIError as error:
            text = f"The Docker engine failed: {engine_error_text(error)}."
            raise CommandNotStarted(text) from None
        except ENGINE_ERRORS as error:
            raise _lost(error) from None
        self._resolve(self._started, None)

    def _connect(self) -> None:
        """Connect to the command's stdin and output. The SDK's `attach_socket` would wait for an
        engine that hangs without a limit.
        """
        engine = self._engine
        response = engine._post(
            engine._url("/containers/{0}/attach", self._name),
            params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1},
            headers={"Connection": "Upgrade", "Upgrade": "tcp"},
            stream=True,
        )
        self._connection = engine._get_raw_response_socket(response)
        self._socket = getattr(self._connection, "_sock", self._connection)
        self._socket.settimeout(None)

    def _create(self) -> None:
        try:
            self._engine.create_container(**self._request)
        except APIError:
            raise
        except ENGINE_ERRORS:
            self._leave(self._name)  # the engine may create it yet
            raise

    def _copy_output(self) -> None:
        with _interrupted(unless=self._stop):
            for number, data in frames_iter(self._connection, tty=False):
                self._room.acquire()
                if self._stop.is_set():
                    return
                piece: Piece = ("stdout" if number == 1 else "stderr", data)
                self._tell(self._pieces.put_nowait, piece)
        self._tell(self._pieces.put_nowait, None)

    def _remove(self) -> bool:
        """Remove the container; return whether that is certain."""
        self._disconnect()
        if self._connection is not None:
            self._connection._response.close()
        try:
            self._engine.remove_container(self._name, force=True, v=True)
        except NotFound:
            return True
        except ENGINE_ERRORS:
            self._leave(self._name)
            return False
        return True

    def _disconnect(self) -> None:
        """End the connection; that also wakes a thread that reads it."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _fail(self, error: RunnerToolFailed) -> None:
        """Report an error to what waits: for the start, or for the end of the command."""

        def report() -> None:
            waiting: list[asyncio.Future[Any]] = [self._started, self._exit]
            for future in [one for one in waiting if not one.done()][:1]:
                future.set_exception(error)
                future.exception()  # retrieved, if nothing waits any more

        self._tell(report)

    def _resolve(self, future: asyncio.Future[Any], value: Any) -> None:
        self._tell(lambda: None if future.done() else future.set_result(value))

    def _tell(self, function: Callable[..., object], *args: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the runner ends
            self._loop.call_soon_threadsafe(function, *args)


@contextlib.contextmanager
def _not_started() -> Iterator[None]:
    try:
        yield
    except ENGINE_ERRORS as error:
        text = f"The Docker engine failed: {engine_error_text(error)}."
        raise CommandNotStarted(text) from None


@contextlib.contextmanager
def _interrupted(unless: threading.Event | None = None) -> Iterator[None]:
    """Raise CommandInterrupted for an engine's error, unless the call has ended the connection."""
    try:
        yield
    except ENGINE_ERRORS as error:
        if unless is None or not unless.is_set():
            raise _lost(error) from None


def _lost(error: Exception) -> CommandInterrupted:
    return CommandInterrupted(
        f"The Docker engine failed while the command ran: {engine_error_text(error)}. What the"
        " command did until then is unknown."
    )
