"""Isolation with bubblewrap: each command runs in its own namespaces, without a daemon or an image.

A command sees /usr, /bin and /lib*, a few files of /etc, its own /tmp and the runner's folder; it
can change only the last two. It sees no other process, no home folder and none of the runner's
environment variables, and has network access only with --allow-net.
"""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from platform import machine

from runners.docker_runner.errors import IsolationMissing
from runners.docker_runner.isolation.base import (
    INSIDE,
    Command,
    RunnerFolder,
    inside,
    start_supervised,
)
from runners.docker_runner.isolation.control_groups import find_control_groups
from runners.docker_runner.isolation.system_calls import filter_of_calls
from runners.processes.supervised import Order, SupervisedProgram

USER = 1000  # inside; outside it is the user who started the runner
SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "nsswitch.conf")
ETC_OF_NETWORK = ("hosts", "resolv.conf", "services", "protocols", "ssl/certs", "ca-certificates")
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb"}  # noqa: S108
CHECK_S = 30.0
OPEN_FILES = 4096
_NAMES = Path(__file__).with_name("names")


class BubblewrapIsolation:
    """Run each command in its own namespaces.

    Raises:
        IsolationMissing: A program is missing, root may make no control group, or there is no
            filter of system calls for this kind of machine.
    """

    def __init__(self, runner_folder: RunnerFolder) -> None:
        self._runner_folder = runner_folder
        self._bwrap, self._prlimit = _program("bwrap", "bubblewrap"), _program("prlimit", "")
        self._shell = shutil.which("bash", path=ENV["PATH"]) or "/bin/sh"
        # The kernel exempts root from the limit of processes, in whatever namespace.
        self._groups = find_control_groups(runner_folder.limits) if os.getuid() == 0 else None
        self._filter = _filter()

    async def check(self) -> None:
        """Run a command that does nothing; see `Isolation`."""
        running = await self.start(Command("true", ".", {}, CHECK_S))
        output = bytearray()
        try:
            async with asyncio.timeout(CHECK_S):
                async for _, data in running.pieces():
                    output += data
                status = await running.wait()
        except TimeoutError:
            raise IsolationMissing("bubblewrap did not finish.") from None
        finally:
            await running.end()
        if status:
            message = output.decode("utf-8", "replace").strip().replace("\n", " ")[:300]
            raise IsolationMissing(
                f"bubblewrap cannot isolate commands here: {message or f'status {status}'}."
                " The kernel or the surrounding container allows no user namespaces. Choose"
                " --isolation docker, or run the runner on its own machine."
            )

    async def sweep(self) -> None:
        """Nothing is left behind: a command's supervisor ends with its runner."""

    async def start(self, command: Command) -> SupervisedProgram:
        """Start a command; see `Isolation`."""
        return await start_supervised(
            Order(
                argv=[self._bwrap, "--", *self._limited(command), self._shell, "-c", command.line],
                env={},
                hidden=[
                    *self._world(),
                    *_variables({**ENV, **command.env}),
                    "--chdir",
                    inside(command.folder),
                ],
                filter=self._filter.hex(),
                groups=self._groups.new() if self._groups is not None else {},
            )
        )

    def _limited(self, command: Command) -> list[str]:
        """Return the program that sets the limits: within, where the processes are counted."""
        limits = self._runner_folder.limits
        wanted = {
            "nproc": limits.processes,
            "as": limits.memory_bytes,
            "fsize": limits.file_bytes,
            "cpu": limits.cpu_seconds(command.timeout_s),
            "core": 0,
            "nofile": OPEN_FILES,
        }
        options = [f"--{name}={_allowed(name, most)}" for name, most in wanted.items()]
        return [self._prlimit, *options, "--"]

    def _world(self) -> Iterator[str]:
        """Yield what the command's world is made of, for bubblewrap's `--args`."""
        size = str(self._runner_folder.limits.scratch_bytes)
        yield from ("--unshare-user", "--uid", str(USER), "--gid", str(USER), "--unshare-pid")
        yield from ("--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--disable-userns")
        if not self._runner_folder.allow_net:
            yield "--unshare-net"
        yield from ("--cap-drop", "ALL", "--new-session", "--die-with-parent", "--clearenv")
        yield from ("--hostname", "runner", "--proc", "/proc", "--dev", "/dev")
        yield from _system()
        yield from self._etc()
        yield from ("--size", size, "--tmpfs", "/dev/shm", "--size", size, "--tmpfs", "/tmp")  # noqa: S108
        yield from ("--bind", str(self._runner_folder.root), INSIDE)
        for folder in self._runner_folder.closed:
            shown = any(folder.is_relative_to(one) for one in _shown_folders())
            if shown and folder.is_dir():
                yield from ("--size", "4096", "--tmpfs", str(folder), "--remount-ro", str(folder))
        # /proc/sys is the machine's: root may write it without any capability, and with it say
        # what the kernel starts outside when a program crashes.
        yield from ("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/")

    def _etc(self) -> Iterator[str]:
        yield from ("--perms", "755", "--dir", "/etc")
        for name in ("passwd", "group"):
            yield from ("--ro-bind", str(_NAMES / name), f"/etc/{name}")
        for name in (*ETC, *(ETC_OF_NETWORK if self._runner_folder.allow_net else ())):
            yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _program(name: str, package: str) -> str:
    found = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin:/usr/sbin")
    if found is None:
        raise IsolationMissing(
            f"{name} is not installed, and --isolation bubblewrap needs it (Debian:"
            f" `apt-get install {package or 'util-linux'}`). Or choose --isolation docker."
        )
    return found


def _filter() -> bytes:
    found = filter_of_calls()
    if found is None:
        raise IsolationMissing(
            f"bubblewrap needs a filter of system calls, and there is none for {machine()}."
            " Choose --isolation docker."
        )
    return found


def _allowed(name: str, wanted: int) -> int:
    """Return a limit, at most the hard limit of this process."""
    hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _shown_folders() -> list[Path]:
    return [Path("/usr"), *(Path("/") / name for name in SYSTEM)]


def _system() -> Iterator[str]:
    """Yield the machine's programs, read-only; what is a link of /usr's stays one."""
    yield from ("--ro-bind", "/usr", "/usr")
    for name in SYSTEM:
        path = Path("/") / name
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))


def _variables(env: dict[str, str]) -> Iterator[str]:
    for name, value in env.items():
        yield from ("--setenv", name, value)
