"""Commands in a container each, made by a Docker engine from an image that the operator chose.

The one module, with `running_container.py`, that imports Docker's SDK, so it is imported only where
containers were asked for. The SDK blocks: every call of it happens on a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import secrets
import threading
import time
from pathlib import Path
from typing import Any

import docker
from docker.errors import DockerException, ImageNotFound, NotFound
from docker.types import LogConfig, Mount, Ulimit

from runners.docker_runner.errors import IsolationMissing, RunnerToolFailed
from runners.docker_runner.isolation.base import INSIDE, Command, RunnerFolder, inside
from runners.docker_runner.isolation.running_container import (
    ENGINE_ERRORS,
    ENGINE_S,
    RunningContainer,
    boot_command,
    engine_error_text,
)

UNTIL = "continuity.runner.until"  # Unix time in seconds after which the container can be removed
ROOT = "continuity.runner.root"  # the folder of its runner, which alone removes it then
GRACE_S = 60
LEFT_S = 600.0  # an engine that hangs can create a container after it was asked to remove it
CHECK_S = 30.0
UNPRIVILEGED = "65534:65534"
CANNOT_WRITE, WORKS = 3, 4  # exit statuses of the check
_CONNECTIONS = 256
_ENV = {"HOME": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb"}  # noqa: S108


class ContainerIsolation:
    """Commands in a container each.

    Raises:
        IsolationMissing: No engine answers.
    """

    def __init__(self, runner_folder: RunnerFolder, image: str) -> None:
        self._runner_folder, self._image = runner_folder, image
        # Names of containers that may exist although their calls ended, and until when.
        self._left: dict[str, float] = {}
        self._sweeping = threading.Lock()
        try:
            self._engine: Any = docker.DockerClient.from_env(
                timeout=ENGINE_S, max_pool_size=_CONNECTIONS
            ).api
        except DockerException as error:
            raise IsolationMissing(
                f"No Docker engine answers ({engine_error_text(error)}). Start one, set"
                " DOCKER_HOST, or choose --isolation bubblewrap."
            ) from None

    async def check(self) -> None:
        """Run a command that tries to write the folder, and remove what a killed runner left; see
        `Isolation`.
        """
        try:
            await asyncio.to_thread(self._engine.inspect_image, self._image)
        except ImageNotFound:
            raise IsolationMissing(
                f"The engine has no image {self._image}. Fetch it (`docker pull {self._image}`),"
                " or name another with --image."
            ) from None
        except ENGINE_ERRORS as error:
            raise IsolationMissing(
                f"The Docker engine failed: {engine_error_text(error)}."
            ) from None
        await self.sweep()
        status = await self._try_command()
        if status == CANNOT_WRITE:
            user, root = user_of(self._runner_folder.root), self._runner_folder.root
            raise IsolationMissing(
                f"Commands in containers run as user {user}, who cannot write {root}. Run"
                f" `chown {user} {root}`, or run the runner as the user who owns the folder."
            )
        if status != WORKS:
            raise IsolationMissing(
                f"A container of {self._image} does not run commands (status {status}): the image"
                " needs a shell at /bin/sh. Name another with --image."
            )

    async def _try_command(self) -> int:
        line = f"if [ -w . ]; then exit {WORKS}; else exit {CANNOT_WRITE}; fi"
        try:
            running = await self.start(Command(line, ".", {}, CHECK_S))
            try:
                async with asyncio.timeout(CHECK_S):
                    return await running.wait()
            finally:
                await running.end()
        except (RunnerToolFailed, TimeoutError) as error:
            reason = getattr(error, "message", "") or f"no answer within {CHECK_S:.0f} s"
            raise IsolationMissing(f"No container of {self._image} can be run: {reason}") from None

    async def start(self, command: Command) -> RunningContainer:
        """Start a command; see `Isolation`."""
        until = int(time.time() + command.timeout_s + GRACE_S)
        request = {
            "image": self._image,
            "name": f"continuity-{secrets.token_hex(8)}",
            "command": boot_command(command),
            "user": user_of(self._runner_folder.root),
            "working_dir": inside(command.folder),
            "environment": {**_ENV, **command.env},
            "entrypoint": "",
            "network_disabled": not self._runner_folder.allow_net,
            "hostname": "runner",
            "tty": False,
            "stdin_open": True,
            "labels": {UNTIL: str(until), ROOT: str(self._runner_folder.root)},
            "host_config": self._engine.create_host_config(
                **host_config(self._runner_folder, command)
            ),
        }
        return await RunningContainer(self._engine, request, self._leave).start()

    def _leave(self, name: str) -> None:
        self._left[name] = time.monotonic() + LEFT_S

    async def sweep(self) -> None:
        """Remove containers that a killed runner of this folder left, and those that the engine
        did not remove when it was asked; see `Isolation`.
        """
        await asyncio.to_thread(self._sweep)

    def _sweep(self) -> None:
        if not self._sweeping.acquire(blocking=False):
            return  # the engine hangs, and an earlier sweep waits for it
        try:
            with contextlib.suppress(*ENGINE_ERRORS):
                for name in [*self._left, *self._expired()]:
                    with contextlib.suppress(NotFound):
                        self._engine.remove_container(name, force=True, v=True)
                        self._left.pop(name, None)
                    if self._left.get(name, math.inf) < time.monotonic():
                        del self._left[name]
        finally:
            self._sweeping.release()

    def _expired(self) -> list[str]:
        """Return the ids of this folder's containers whose time is over."""
        label = f"{ROOT}={self._runner_folder.root}"
        listed = self._engine.containers(all=True, filters={"label": label})
        now = time.time()
        return [one["Id"] for one in listed if float(one["Labels"].get(UNTIL, "inf")) < now]


def host_config(runner_folder: RunnerFolder, command: Command) -> dict[str, Any]:
    """Return the host configuration of a container: mounts, network and limits."""
    limits = runner_folder.limits
    scratch = f"rw,exec,nosuid,nodev,size={limits.scratch_bytes}"
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
