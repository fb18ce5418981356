"""Commands in a container each, made by a Docker engine from an image that the operator chose.

The one module that imports Docker's SDK, so it is imported only where containers were asked for.
The SDK blocks: every call of it happens on a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import docker
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.types import LogConfig, Mount, Ulimit

from runners.docker_runner.errors import CommandNotStarted, IsolationMissing
from runners.docker_runner.isolation.base import INSIDE, Command, Piece, RunnerFolder, inside

ENGINE_S = 30.0  # for one request to the engine, except the output
LABEL = "continuity.runner.until"  # Unix time in seconds after which the container can be removed
GRACE_S = 60
UNPRIVILEGED = "65534:65534"
_CONNECTIONS = 256
_ENV = {"HOME": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb"}  # noqa: S108
_Result = TypeVar("_Result")


class ContainerIsolation:
    """Commands in a container each.

    Raises:
        IsolationMissing: No engine answers.
    """

    def __init__(self, runner_folder: RunnerFolder, image: str) -> None:
        self._runner_folder, self._image = runner_folder, image
        try:
            self._engine: Any = docker.DockerClient.from_env(
                timeout=ENGINE_S, max_pool_size=_CONNECTIONS
            ).api
        except DockerException as error:
            raise IsolationMissing(
                f"No Docker engine answers ({_error_text(error)}). Start one, set DOCKER_HOST,"
                " or choose --isolation bubblewrap."
            ) from None

    async def check(self) -> None:
        """Ask for the image, and take away what a runner that was killed left behind; see
        `Isolation`.
        """
        try:
            await asyncio.to_thread(self._engine.inspect_image, self._image)
            await asyncio.to_thread(self._sweep)
        except ImageNotFound:
            raise IsolationMissing(
                f"The engine has no image {self._image}. Fetch it (`docker pull {self._image}`),"
                " or name another with --image."
            ) from None
        except (DockerException, OSError) as error:
            raise IsolationMissing(f"The Docker engine failed: {_error_text(error)}.") from None

    async def start(self, command: Command) -> RunningContainer:
        """Start a command; see `Isolation`."""
        made = await _complete(self._make, command)
        try:
            await _complete(made.begin)
        except BaseException:
            await made.end()
            raise
        return made

    def _make(self, command: Command) -> RunningContainer:
        env = {**_ENV, **command.env}
        with _engine_errors():
            created = self._engine.create_container(
                self._image,
                ["/bin/sh", "-c", command.line],
                user=user_of(self._runner_folder.root),
                working_dir=inside(command.folder),
                environment=env,
                entrypoint="",
                network_disabled=not self._runner_folder.allow_net,
                hostname="runner",
                tty=False,
                labels={LABEL: str(int(time.time() + command.timeout_s + GRACE_S))},
                host_config=self._engine.create_host_config(
                    **host_config(self._runner_folder, command)
                ),
            )
        return RunningContainer(self._engine, created["Id"])

    def _sweep(self) -> None:
        for one in self._engine.containers(all=True, filters={"label": LABEL}):
            if float(one["Labels"].get(LABEL, "inf")) < time.time():
                with contextlib.suppress(APIError):  # another runner was first
                    self._engine.remove_container(one["Id"], force=True, v=True)


class RunningContainer:
    """A container from its making until `end`; see `Running`."""

    def __init__(self, engine: Any, container_id: str) -> None:
        self._engine, self._id = engine, container_id
        self._output: Any = None

    def begin(self) -> None:
        """Listen, then start, so that nothing is missed."""
        with _engine_errors():
            self._output = self._engine.attach(self._id, stream=True, demux=True)
            self._engine.start(self._id)

    async def pieces(self) -> AsyncIterator[Piece]:
        """Yield what it prints until its end."""
        while (both := await asyncio.to_thread(next, self._output, None)) is not None:
            if both[0]:
                yield "stdout", both[0]
            if both[1]:
                yield "stderr", both[1]

    async def wait(self) -> int:
        """Return the exit status of its command."""
        result = await asyncio.to_thread(self._engine.wait, self._id, timeout=ENGINE_S)
        return int(result["StatusCode"])

    async def end(self) -> None:
        """Remove the container with whatever runs in it."""
        await _complete(self._remove)

    def _remove(self) -> None:
        with contextlib.suppress(NotFound):
            self._engine.remove_container(self._id, force=True, v=True)
        if self._output is not None:
            with contextlib.suppress(OSError):  # the engine was first
                self._output.close()
            self._output._response.close()  # the SDK leaves open what holds the socket


def host_config(runner_folder: RunnerFolder, command: Command) -> dict[str, Any]:
    """Return the host configuration of a container: mounts, network and limits."""
    limits = runner_folder.limits
    scratch = f"rw,nosuid,nodev,size={limits.scratch_bytes}"
    return {
        "mounts": [Mount(INSIDE, str(runner_folder.root), type="bind", propagation="rprivate")],
        "network_mode": "bridge" if runner_folder.allow_net else "none",
        "mem_limit": limits.memory_bytes,
        "memswap_limit": limits.memory_bytes,
        "nano_cpus": int(limits.cpus * 1e9),
        "pids_limit": limits.processes,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "privileged": False,
        "read_only": True,
        "tmpfs": {"/tmp": scratch},  # noqa: S108
        "shm_size": limits.scratch_bytes,
        "ipc_mode": "private",
        "init": True,
        "auto_remove": False,
        "log_config": LogConfig(type=LogConfig.types.NONE),
        "ulimits": [
            Ulimit(name="core", soft=0, hard=0),
            Ulimit(name="nofile", soft=4096, hard=4096),
            Ulimit(name="fsize", soft=limits.file_bytes, hard=limits.file_bytes),
            _cpu(limits.cpu_seconds(command.timeout_s)),
        ],
    }


def user_of(root: Path) -> str:
    """Return the user and group of commands: the runner's, or the folder owner's; never root."""
    owner = root.stat()
    for user, group in ((os.getuid(), os.getgid()), (owner.st_uid, owner.st_gid)):
        if user != 0:
            return f"{user}:{group}"
    return UNPRIVILEGED


def _cpu(seconds: int) -> Ulimit:
    return Ulimit(name="cpu", soft=seconds, hard=seconds)


async def _complete(work: Callable[..., _Result], *args: Any) -> _Result:
    """Run blocking work on a thread. If the caller is cancelled, wait for the work and remove a
    container that it created, so that no container is leaked.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work, *args))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with contextlib.suppress(CommandNotStarted):
            made = await task
            if isinstance(made, RunningContainer):
                await made.end()
        raise


@contextlib.contextmanager
def _engine_errors() -> Iterator[None]:
    try:
        yield
    except (DockerException, OSError) as error:
        raise CommandNotStarted(f"The Docker engine failed: {_error_text(error)}.") from None


def _error_text(error: Exception) -> str:
    """Return the engine's error message on one line."""
    text = error.explanation if isinstance(error, APIError) else error
    return " ".join(str(text or error).split())[:300].rstrip(".")
