"""Start a real PostgreSQL and a real Redis on free ports; they stop with the starting process.

    with postgres_server() as postgres, redis_server() as redis:
        … postgres.url, redis.url; postgres.restart(), redis.kill(), redis.start() …

Servers on the standard ports are not used. The module also works outside pytest (benchmarks).
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, TypeVar

import psycopg

from runs.operations.home.redis_server import find_binary

START_TIMEOUT_S = 20.0
# Debian's administrative programs are not on every user's PATH.
PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
# Stops the server when this process exits for any reason: `read` returns when the pipe is closed.
_LEASH = 'read -r _; kill -"$3" "$1" 2>/dev/null; sleep 0.3; rm -rf "$2"'


class Server:
    """A server that can be stopped, killed and started again on the same port with its data."""

    # The signal for an immediate shutdown that still lets the server remove its shared memory.
    at_once: ClassVar[signal.Signals] = signal.SIGKILL

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._leash: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers.

        Starts it again if it exits at once, since children of a killed server may still be exiting.
        """
        deadline = time.monotonic() + START_TIMEOUT_S
        process = self._spawn()
        while not self.answers():
            if time.monotonic() > deadline:
                output = (self.folder / "log").read_text()
                raise RuntimeError(f"{self.command()[0]} did not start:\n{output[-2000:]}")
            time.sleep(0.05)
            if process.poll() is not None:
                process = self._spawn()

    def _spawn(self) -> subprocess.Popen[bytes]:
        self._drop_leash()
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )
        arguments = [str(self._process.pid), str(self.folder), str(int(self.at_once))]
        leash = ["/bin/sh", "-c", _LEASH, "leash", *arguments]
        self._leash = subprocess.Popen(leash, stdin=subprocess.PIPE, start_new_session=True)
        return self._process

    def _drop_leash(self) -> None:
        if self._leash is not None:
            self._leash.kill()
            self._leash.communicate()

    def kill(self) -> None:
        """Kill the server without a shutdown (SIGKILL), as a power cut would."""
        self._end(signal.SIGKILL)

    def end_at_once(self) -> None:
        """Shut the server down immediately; it will not be started again."""
        self._end(self.at_once)

    def stop(self) -> None:
        """Stop the server gracefully and close its clients' connections."""
        self._end(signal.SIGINT)

    def restart(self) -> None:
        """Stop the server and start it again; clients lose their connections, the data stays."""
        self.stop()
        self.start()

    def command(self) -> Sequence[str]:
        """Return the command line."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Return whether the server accepts connections."""
        raise NotImplementedError

    def _end(self, number: int) -> None:
        self._drop_leash()
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(START_TIMEOUT_S)


class RedisServer(Server):
    """A Redis server; its data survives a stop (append-only file) unless a test calls `forget`."""

    @property
    def url(self) -> str:
        """The value for REDIS_URL."""
        return f"redis://127.0.0.1:{self.port}/0"

    def forget(self) -> None:
        """Remove the data of a stopped server, so that it starts empty."""
        shutil.rmtree(self.folder / "appendonlydir", ignore_errors=True)

    def command(self) -> Sequence[str]:
        """Return the command line."""
        binary = shutil.which("redis-server") or find_binary()
        if binary is None:
            raise RuntimeError(
                "No redis-server was found; `make setup-tests` installs what the tests need."
            )
        return [
            str(binary),
            *("--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder)),
            *("--appendonly", "yes", "--appendfsync", "no", "--save", ""),
        ]

    def answers(self) -> bool:
        """Return whether the server accepts commands."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


class PostgresServer(Server):
    """A PostgreSQL server without fsync, with an empty database named `continuity`."""

    at_once = signal.SIGQUIT
    careless: ClassVar[Sequence[str]] = (
        "autovacuum=off",  # statistics of small tables would change the plans that tests look at
        "fsync=off",
        "synchronous_commit=off",
        "full_page_writes=off",
    )

    @property
    def url(self) -> str:
        """The value for DATABASE_URL."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/continuity"

    def command(self) -> Sequence[str]:
        """Return the command line."""
        options = [*self.careless]
        options += [f"port={self.port}", "listen_addresses=127.0.0.1", "max_connections=200"]
        options += [f"unix_socket_directories={self.folder}"]
        settings = [word for option in options for word in ("-c", option)]
        return self._as_nobody("postgres", "-D", str(self.folder / "data"), *settings)

    def answers(self) -> bool:
        """Return whether the server accepts queries."""
        return self._run_sql("SELECT 1")

    def make(self) -> None:
        """Create the cluster, start the server and create the database."""
        _give_to_nobody(self.folder)
        options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync"]
        command = self._as_nobody("initdb", *options, "--locale=C", str(self.folder / "data"))
        made = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, check=False)
        if made.returncode != 0:
            raise RuntimeError(f"initdb failed: {made.stderr}")
        self.start()
        self._run_sql("CREATE DATABASE continuity")

    def set(self, name: str, value: str) -> None:
        """Change a setting of the running server, for its open connections too."""
        self._run_sql(f"ALTER SYSTEM SET {name} = '{value}'")
        self._run_sql("SELECT pg_reload_conf()")

    def _run_sql(self, sql: str) -> bool:
        try:
            with psycopg.connect(
                f"postgresql://postgres@127.0.0.1:{self.port}/postgres",
                autocommit=True,
                connect_timeout=2,
            ) as connection:
                connection.execute(sql)
        except psycopg.OperationalError:
            return False
        return True

    def _as_nobody(self, program: str, *arguments: str) -> list[str]:
        return as_nobody(str(postgres_folder() / program), *arguments)


class StandbyServer(PostgresServer):
    """A streaming standby of another server; `promote` makes it take writes."""

    def __init__(self, folder: Path, *, primary: PostgresServer) -> None:
        super().__init__(folder)
        self._primary = primary

    def make(self) -> None:
        """Copy the primary and start to follow it."""
        _give_to_nobody(self.folder)
        options = ["-D", str(self.folder / "data"), "-R", "--checkpoint=fast", "--no-sync"]
        address = f"postgresql://postgres@127.0.0.1:{self._primary.port}/postgres"
        program = str(postgres_folder() / "pg_basebackup")
        command = as_nobody(program, "-d", address, *options)
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)
        self.start()

    def promote(self) -> None:
        """Let it take writes, as at a fail-over, and wait until it does."""
        self._run_sql("SELECT pg_promote(true, 20)")


class DurablePostgresServer(PostgresServer):
    """A PostgreSQL server with durable commits, as in production; for benchmarks."""

    careless = ()


class PgBouncerServer(Server):
    """A PgBouncer in front of the databases of a PostgreSQL server on 127.0.0.1.

    Args:
        postgres_port: the server's port.
        mode: its pool_mode.
        size: the connections to the server, for each database.
    """

    at_once = signal.SIGTERM

    def __init__(
        self, folder: Path, *, postgres_port: int, mode: str = "transaction", size: int = 4
    ) -> None:
        super().__init__(folder)
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": folder / "users",
            "pool_mode": mode,
            "default_pool_size": size,
            "max_client_conn": 1000,
        }
        (folder / "users").write_text('"postgres" ""\n')
        lines = [f"{name} = {value}" for name, value in settings.items()]
        databases = f"[databases]\n* = host=127.0.0.1 port={postgres_port}\n"
        (folder / "pgbouncer.ini").write_text("\n".join([databases, "[pgbouncer]", *lines, ""]))
        _give_to_nobody(folder)

    def command(self) -> Sequence[str]:
        """Return the command line."""
        assert PGBOUNCER is not None
        return as_nobody(PGBOUNCER, str(self.folder / "pgbouncer.ini"))

    def answers(self) -> bool:
        """Return whether the pooler accepts connections."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False


Kind = TypeVar("Kind", bound=Server)


def as_nobody(*command: str) -> list[str]:
    """Return a command line that runs as an unprivileged user; PostgreSQL and PgBouncer refuse
    root.
    """
    if os.getuid() != 0:
        return [*command]
    group = f"--regid={pwd.getpwnam('nobody').pw_gid}"
    return ["setpriv", "--reuid=nobody", group, "--clear-groups", "--", *command]


def _give_to_nobody(folder: Path) -> None:
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)


def postgres_folder() -> Path:
    """Return the folder of the newest installed PostgreSQL server programs.

    Raises:
        RuntimeError: No PostgreSQL server is installed.
    """
    debian = Path("/usr/lib/postgresql")
    found = sorted(debian.glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("postgres")
    if not found and on_path is None:
        raise RuntimeError(
            "No PostgreSQL server was found; `make setup-tests` installs what the tests need."
        )
    return (found[-1] if found else Path(str(on_path)).resolve()).parent


def free_port() -> int:
    """Return a port of 127.0.0.1 that no process listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def redis_server() -> Iterator[RedisServer]:
    """Yield a Redis server that runs for the length of the block."""
    with served(RedisServer, RedisServer.start) as server:
        yield server


@contextlib.contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Yield a PostgreSQL server for the length of the block; creating it takes about 2 s."""
    with served(PostgresServer, PostgresServer.make) as server:
        yield server


@contextlib.contextmanager
def standby_server(primary: PostgresServer) -> Iterator[StandbyServer]:
    """Yield a streaming standby of a server for the length of the block; creating it takes 1 s."""

    def make(folder: Path) -> StandbyServer:
        return StandbyServer(folder, primary=primary)

    with served(make, StandbyServer.make) as server:
        yield server


@contextlib.contextmanager
def pgbouncer_server(
    *, postgres_port: int, mode: str = "transaction", size: int = 4
) -> Iterator[PgBouncerServer]:
    """Yield a PgBouncer in front of a PostgreSQL server for the length of the block."""

    def make(folder: Path) -> PgBouncerServer:
        return PgBouncerServer(folder, postgres_port=postgres_port, mode=mode, size=size)

    with served(make, PgBouncerServer.start) as server:
        yield server


@contextlib.contextmanager
def served(kind: Callable[[Path], Kind], begin: Callable[[Kind], None]) -> Iterator[Kind]:
    folder = Path(tempfile.mkdtemp(prefix="cty-server-", dir="/tmp"))
    server = kind(folder)
    try:
        begin(server)
        yield server
    finally:
        server.end_at_once()
        shutil.rmtree(folder, ignore_errors=True)
