"""A separate installation for a test that breaks things: a home, a database, a Redis, and real
worker and scheduler processes. The test itself uses the same database as those processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from celery import Celery
from django.conf import settings
from django.db import OperationalError, connection, connections
from django.test import override_settings

from decisions.identity.principals import local_principal
from runs.models import Run, Worker
from runs.queue.slots import ensure_slots
from runs.submission.submit import submit_run
from tests.faults.forked_process import ForkedProcess
from tests.faults.invariants import broken_invariants
from tests.services import RedisServer
from tests.support.runs.unusual_values_template import UnusualValues

ROOT = Path(__file__).parent.parent.parent
TIMEOUT_S = 60.0
PREFIX = "faults:"  # of Redis keys
_celery_apps: list[Celery] = []


def send_wakeup(queue: str, run_id: str) -> None:
    """Send a wake-up as config.celery does, through the broker of the installation in use."""
    _celery_apps[-1].send_task("runs.work", kwargs={"run_id": run_id}, queue=queue, retry=False)


class Process:
    """A long-running management command, in its own process group."""

    def __init__(self, arguments: list[str], env: dict[str, str], log: Path) -> None:
        self.log = log
        self.popen = ForkedProcess(arguments, env, log)
        self.pid = self.popen.pid

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to this process only, as `kill` does."""
        self.popen.send_signal(number)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.send_signal(signal.SIGKILL)
        self.popen.wait(20)

    def wait(self, seconds: float) -> int:
        """Wait for its end and return its exit code."""
        return self.popen.wait(seconds)

    @property
    def is_running(self) -> bool:
        """Return whether it still runs."""
        return self.popen.poll() is None

    def pause(self) -> None:
        """Pause it, but not within a transaction: on SQLite that would block every other
        process."""
        while True:
            self.send_signal(signal.SIGSTOP)
            try:
                with connection.cursor() as cursor:
                    if connection.vendor == "sqlite":
                        cursor.execute("PRAGMA busy_timeout = 300")
                    Worker.objects.filter(id="unregistered").update(host="nowhere")
            except OperationalError:
                self.send_signal(signal.SIGCONT)
                time.sleep(0.1)
            else:
                break
        if connection.vendor == "sqlite":
            connection.close()  # back to the busy timeout of the settings

    def descendants(self) -> list[psutil.Process]:
        """Return all its descendant processes."""
        return psutil.Process(self.pid).children(recursive=True)


class FaultInstallation:
    """Everything that a fault test breaks, with methods to inspect what remains."""

    def __init__(self, home: Path, database_url: str, redis: RedisServer, **env: str) -> None:
        self.home, self.redis = home, redis
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("CONT")
        }
        inherited.pop("DATABASE_URL", None)
        self.env = {
            **inherited,
            "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
            "CONTINUITY_HOME": str(home),
            "REDIS_URL": redis.url,
            "CONTINUITY_SECRET_KEYS": ",".join(settings.CONTINUITY_SECRET_KEYS),
            "CONTINUITY_REDIS_PREFIX": PREFIX,
            "CONTINUITY_TEMPLATE_MODULES": ",".join(
                (
                    "tests.support.runs.step_template",
                    "tests.support.runs.call_template",
                    UnusualValues.__module__,
                )
            ),
            "CONTINUITY_CHROMIUM": os.environ.get("CONTINUITY_CHROMIUM", ""),
            **({"DATABASE_URL": database_url} if database_url else {}),
            **env,
        }
        self.processes: list[Process] = []

    # --- processes ------------------------------------------------------------------------------

    def start(self, *arguments: str, **env: str) -> Process:
        """Start a long-running management command."""
        log = self.home / f"{arguments[0]}-{len(self.processes)}.log"
        self.processes.append(Process(list(arguments), {**self.env, **env}, log))
        return self.processes[-1]

    def workers(self, number: int, **env: str) -> list[Process]:
        """Start workers and wait until all of them are registered."""
        processes = [self.start("worker", **env) for _ in range(number)]
        self.wait_until(lambda: all(map(self.worker_of, processes)), "a worker did not come up")
        return processes

    def worker_of(self, process: Process) -> Worker | None:
        """Return the row under which a worker process is registered now."""
        assert process.is_running, process.log.read_text()[-3000:]
        live_workers = Worker.objects.filter(lost_at__isnull=True)
        return live_workers.filter(process__contains=f":{process.pid}:").first()

    def arm_failpoint(self, name: str, action: str = "kill") -> Path:
        """Arm a failpoint in every process of this installation."""
        folder = self.home / "failpoints"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(action)
        return folder / name

    def failpoint_was_hit(self, name: str) -> bool:
        """Return whether an armed failpoint was reached."""
        return (self.home / "failpoints" / f"{name}.hit").exists()

    # --- runs -----------------------------------------------------------------------------------

    def submit(self, *do: str, template: str = "test_stepwise", **inputs: Any) -> str:
        """Submit a run and return its id."""
        options = inputs.pop("options", {})
        return submit_run(
            principal=local_principal(),
            template_id=template,
            inputs={"do": list(do or ("ok",)), **inputs},
            options={"mode": "async", **options},
        ).run_id

    def wait_until(
        self, condition: Callable[[], object], message: str = "", seconds: float = TIMEOUT_S
    ) -> float:
        """Wait until the condition is true and return how long that took; fail with `message` if it
        never is."""
        start_time = time.monotonic()
        while not condition():
            timed_out = time.monotonic() - start_time > seconds
            assert not timed_out, f"{message or 'it never came true'}\n{self.logs()}"
            time.sleep(0.05)
        return time.monotonic() - start_time

    def wait_for_end(self, run_id: str, seconds: float = TIMEOUT_S) -> Run:
        """Wait for the end of a run and return the run."""
        self.wait_until(
            lambda: Run.objects.get(id=run_id).ended_at, f"{run_id} did not end", seconds
        )
        return Run.objects.get(id=run_id)

    def check_invariants(self) -> None:
        """Check that a new run succeeds, that every run has ended and that every invariant
        holds."""
        assert self.wait_for_end(self.submit()).status == "succeeded"
        self.wait_until(
            lambda: not Run.objects.filter(ended_at__isnull=True).exists(), "runs are left"
        )
        deadline = time.monotonic() + 10  # slots of killed processes are freed a moment later
        while broken := broken_invariants():
            assert time.monotonic() < deadline, "\n".join([*broken[:20], self.logs()])
            time.sleep(0.1)

    def logs(self) -> str:
        """Return the end of the output of every process."""
        return "\n".join(f"--- {p.log.name}\n{p.log.read_text()[-1500:]}" for p in self.processes)

    def close(self) -> None:
        """End every process that was started here."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.popen.wait(20)


@contextlib.contextmanager
def use_database(**database: Any) -> Iterator[None]:
    """Let this process use another database of the same kind within the block."""
    shared = connections["default"].settings_dict
    before = {name: shared.get(name) for name in database}
    connection.close()
    shared.update(database)
    try:
        yield
    finally:
        connection.close()
        shared.update(before)


@contextlib.contextmanager
def use_installation(installation: FaultInstallation) -> Iterator[FaultInstallation]:
    """Point this process's own services at an installation, and end its processes afterwards."""
    app = Celery("faults", broker=installation.redis.url, set_as_current=False)
    options = {**settings.CELERY_BROKER_TRANSPORT_OPTIONS, "global_keyprefix": PREFIX}
    app.conf.broker_transport_options = options
    _celery_apps.append(app)
    overrides = {
        "CONTINUITY_HOME": installation.home,
        "REDIS_URL": installation.redis.url,
        "REDIS_PREFIX": PREFIX,
        "CONTINUITY_NOTIFY_WORKERS": "tests.faults.installation.send_wakeup",
        "CELERY_BROKER_TRANSPORT_OPTIONS": options,
    }
    with override_settings(**overrides):
        ensure_slots()
        try:
            yield installation
        finally:
            installation.close()
            _celery_apps.remove(app)
            app.close()
    shutil.rmtree(installation.home, ignore_errors=True)
