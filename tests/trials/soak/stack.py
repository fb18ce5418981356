"""The processes and servers of the soak, and what happens to them.

A thread starts each process again half a second after it ended, as a service manager does.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil

from tests.services import (
    DurablePostgresServer,
    PgBouncerServer,
    PostgresServer,
    RedisServer,
    StandbyServer,
    free_port,
    pgbouncer_server,
    redis_server,
    served,
)

ROOT = Path(__file__).parents[3]
ROLES = ("serve", "serve", "scheduler", "scheduler", "worker", "worker")
DISK_MB = 256  # of the file system that has the artifacts
STOP_S = 30.0


class Part:
    """A long-running command, started again whenever it ends."""

    def __init__(self, name: str, arguments: list[str], env: dict[str, str], home: Path) -> None:
        self.name, self.role = name, arguments[0]
        self.port = int(arguments[arguments.index("--port") + 1]) if "--port" in arguments else 0
        self.starts = 0
        self._arguments, self._env, self._home = arguments, env, home
        self.log = home / f"{name}.log"
        self.popen = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        with self.log.open("ab") as file:
            return subprocess.Popen(
                [sys.executable, "manage.py", *self._arguments],
                cwd=ROOT,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def keep_up(self) -> None:
        """Start it again if it has ended."""
        if self.popen.poll() is not None:
            self._kill_group()  # what a killed process left behind, as a service manager does
            self.popen = self._start()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)

    @property
    def address(self) -> str:
        """Where a web process serves."""
        return f"http://127.0.0.1:{self.port}"

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process alone."""
        with contextlib.suppress(ProcessLookupError):
            self.popen.send_signal(number)

    def end(self) -> None:
        """End it and all that it started."""
        self._kill_group()
        self.popen.wait(STOP_S)

    def usage(self) -> tuple[int, int]:
        """Return its megabytes of memory and its open files, without its children."""
        process = psutil.Process(self.popen.pid)
        return process.memory_info().rss // 2**20, process.num_fds()


class DurableStandby(StandbyServer):
    """A standby that loses no commit when it is stopped at once after it was promoted."""

    careless = ()


class Databases:
    """A PostgreSQL server, its streaming standby, and a pooler in front of the one that writes."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self.primary: PostgresServer = stack.enter_context(
            served(DurablePostgresServer, PostgresServer.make)
        )
        self.standby = self._standby_of(self.primary)
        self.pooler: PgBouncerServer = stack.enter_context(
            pgbouncer_server(postgres_port=self.primary.port, mode="session", size=60)
        )
        self._ports = [self.primary.port, self.standby.port]

    def _standby_of(self, primary: PostgresServer, port: int | None = None) -> StandbyServer:
        def make(folder: Path) -> StandbyServer:
            server = DurableStandby(folder, primary=primary)
            server.port = port or server.port
            return server

        return self._stack.enter_context(served(make, DurableStandby.make))

    @property
    def url(self) -> str:
        """DATABASE_URL with both servers, of which clients use the one that takes writes."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._ports)
        return f"postgresql://postgres@{hosts}/continuity"

    @property
    def pooled_url(self) -> str:
        """DATABASE_URL of the pooler."""
        return f"postgresql://postgres@127.0.0.1:{self.pooler.port}/continuity"

    def switch_over(self) -> None:
        """Stop the server that writes, promote the standby, and make the old one its standby."""
        old = self.primary
        old.stop()
        self.standby.promote()
        self.primary = self.standby
        self.pooler.stop()
        ini = self.pooler.folder / "pgbouncer.ini"
        ini.write_text(ini.read_text().replace(f"port={old.port}", f"port={self.primary.port}"))
        self.pooler.start()
        old.end_at_once()
        self.standby = self._standby_of(self.primary, old.port)


class Stack:
    """All processes and servers; `fault_names` are what can happen to them."""

    def __init__(self, home: Path, stack: contextlib.ExitStack, *, on_sqlite: bool) -> None:
        self.home = home
        self.on_sqlite = on_sqlite
        self.redis: RedisServer = stack.enter_context(redis_server())
        self.databases = None if on_sqlite else Databases(stack)
        self._disk = stack.enter_context(small_disk(home / "home" / "artifacts"))
        self._env: dict[str, str] = {}
        self.parts: list[Part] = []
        self._ending = threading.Event()
        self._held: set[str] = set()  # parts that are down on purpose

    @property
    def has_small_disk(self) -> bool:
        """Whether the artifacts have a file system of their own, which can be filled."""
        return self._disk

    def start(self, env: dict[str, str]) -> None:
        """Start all processes, and the thread that keeps them up."""
        self._env = env
        for number, role in enumerate(ROLES):
            arguments = [role, "--port", str(free_port())] if role == "serve" else [role]
            own = dict(env)
            if self.databases is not None and number % 2:  # every second one through the pooler
                own["DATABASE_URL"] = self.databases.pooled_url
            self.parts.append(Part(f"{role}-{number}", arguments, own, self.home))
        runner = ["docker_runner", "--root", str(self.home / "runner"), "--port", str(free_port())]
        self.parts.append(Part("runner", [*runner, "--isolation", "process"], env, self.home))
        threading.Thread(target=self._keep_up, daemon=True).start()
        self.wait_until_served()

    def _keep_up(self) -> None:
        while not self._ending.wait(0.5):
            for part in self.parts:
                if part.name not in self._held:
                    part.keep_up()

    def named(self, role: str) -> list[Part]:
        """Return the processes of a role."""
        return [part for part in self.parts if part.role == role]

    def web(self) -> Part:
        """Return a web process, which may be down."""
        return random.choice(self.named("serve"))

    def command(self, *arguments: str) -> str:
        """Run a management command and return what it prints."""
        ran = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if ran.returncode != 0:
            raise RuntimeError(f"{arguments[0]}: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
        return ran.stdout.strip()

    def set_environment(self, env: dict[str, str]) -> None:
        """Set the environment of commands before `start`."""
        self._env = env

    def wait_until_served(self, within_s: float = 120.0) -> None:
        """Wait until every web process serves."""
        deadline = time.monotonic() + within_s
        for part in self.named("serve"):
            while True:
                with contextlib.suppress(httpx.HTTPError):
                    httpx.get(f"{part.address}/healthz").raise_for_status()
                    break
                if time.monotonic() > deadline:
                    raise RuntimeError(
                        f"{part.name} does not serve: {part.log.read_text()[-3000:]}"
                    )
                time.sleep(0.3)

    def close(self) -> None:
        """End all processes."""
        self._ending.set()
        time.sleep(0.6)
        for part in self.parts:
            part.send(signal.SIGCONT)
            part.end()

    # --- faults ---------------------------------------------------------------------------------

    @property
    def fault_names(self) -> list[str]:
        """The names of all faults that can be tried here."""
        names = [
            *(f"kill_{role}" for role in ("web", "scheduler", "worker")),
            *(f"pause_{role}" for role in ("web", "scheduler", "worker")),
            *("redis_emptied", "redis_replica", "redis_killed", "runner_cut_off", "clock_stepped"),
        ]
        if self.has_small_disk:
            names.append("disk_full")
        if self.databases is not None:
            names += ["postgresql_fast", "postgresql_immediate", "postgresql_read_only"]
            names += ["postgresql_switched_over", "pooler_restarted"]
        return names

    def cause(self, name: str) -> None:
        """Cause a fault, wait as long as it lasts, and undo it."""
        kind, _, what = name.partition("_")
        if kind in ("kill", "pause"):
            role = "serve" if what == "web" else what
            part = random.choice(self.named(role))
            self._kill(part) if kind == "kill" else self._pause(part)
        else:
            getattr(self, f"_{name}")()

    def _kill(self, part: Part) -> None:
        part.send(signal.SIGKILL)
        time.sleep(5)

    def _pause(self, part: Part) -> None:
        process = part.popen
        process.send_signal(signal.SIGSTOP)
        time.sleep(45)
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)

    def _redis_emptied(self) -> None:
        self.redis.kill()
        self.redis.forget()
        time.sleep(3)
        self.redis.start()

    def _redis_killed(self) -> None:
        self.redis.kill()
        time.sleep(15)
        self.redis.start()

    def _redis_replica(self) -> None:
        self._redis_command("REPLICAOF", "127.0.0.1", "1")
        time.sleep(20)
        self._redis_command("REPLICAOF", "NO", "ONE")

    def _redis_command(self, *words: str) -> None:
        import redis

        with redis.Redis.from_url(self.redis.url) as client:
            client.execute_command(*words)

    def _runner_cut_off(self) -> None:
        part = next(part for part in self.parts if part.name == "runner")
        self._held.add(part.name)
        part.send(signal.SIGKILL)
        time.sleep(15)
        self._held.discard(part.name)

    def _clock_stepped(self) -> None:
        for seconds in ("600", "-600"):
            for role in ("serve", "scheduler", "worker"):
                (self.home / "home" / f"clock-{role}").write_text(seconds)
            time.sleep(15)
        for role in ("serve", "scheduler", "worker"):
            (self.home / "home" / f"clock-{role}").unlink()

    def _disk_full(self) -> None:
        filler = self.home / "home" / "artifacts" / "filler"
        with contextlib.suppress(OSError), filler.open("wb") as file:
            while True:
                file.write(b"\0" * 65536)
        time.sleep(25)
        filler.unlink()

    def _postgresql_fast(self) -> None:
        assert self.databases is not None
        self.databases.primary.restart()

    def _postgresql_immediate(self) -> None:
        assert self.databases is not None
        self.databases.primary.end_at_once()
        self.databases.primary.start()

    def _postgresql_read_only(self) -> None:
        assert self.databases is not None
        primary = self.databases.primary
        primary.set("default_transaction_read_only", "on")
        time.sleep(9)
        primary.set("default_transaction_read_only", "off")

    def _postgresql_switched_over(self) -> None:
        assert self.databases is not None
        self.databases.switch_over()

    def _pooler_restarted(self) -> None:
        assert self.databases is not None
        self.databases.pooler.kill()
        time.sleep(2)
        self.databases.pooler.start()


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a small file system in memory on a folder, where this user may; yield whether it is."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(folder)]
    mounted = False
    if mount is not None:
        done = subprocess.run([mount, *options], capture_output=True, check=False)
        mounted = done.returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)
