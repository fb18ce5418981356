"""A process that has imported the third-party packages, and forks for each command of a fault test.

Importing them takes two thirds of a worker's start. The product is imported by the child, which has
a session, an environment, output, signals and an exit of its own, as a process that was started by
its command line.

Reads a line of JSON for each request from standard input and answers with a line: the process id of
a new command (`arguments`, `environment`, `folder`, `log`), or the exit status of one (`pid`), null
while it runs.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import runpy
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

# What a worker, a scheduler and a web process import; modules that need Django's settings are left
# to the child.
PACKAGES = [
    "asgiref.sync",
    "django.core.management",
    "django.db.migrations.executor",
    "django.views.generic",
    "psycopg",
    "django.db.backends.postgresql.base",
    "django.db.backends.sqlite3.base",
    "celery.app.amqp",
    "celery.app.builtins",
    "celery.app.control",
    "celery.app.events",
    "celery.app.log",
    "celery.apps.worker",
    "celery.concurrency.thread",
    "celery.events.state",
    "celery.fixups.django",
    "celery.loaders.app",
    "celery.utils.debug",
    "celery.worker.components",
    "celery.worker.consumer",
    "celery.worker.control",
    "celery.worker.strategy",
    "kombu.transport.redis",
    "redis.asyncio",
    "cryptography.fernet",
    "cryptography.hazmat.primitives.ciphers.aead",
    "email.headerregistry",
    "environ",
    "httpcore2",
    "jsonschema_rs",
    "orjson",
    "playwright.async_api",
    "prometheus_client",
    "psutil",
    "pydantic",
    "pydantic.deprecated.decorator",
    "starlette.applications",
    "uvicorn.server",
    "uvloop",
    "wcwidth",
    "yaml",
]


def serve() -> dict[str, Any]:
    """Answer requests until standard input ends; in a child, return the request to run."""
    running: set[int] = set()
    for line in sys.stdin:
        request = json.loads(line)
        if "pid" in request:
            answer = exit_status(request["pid"])
            if answer is not None:
                running.discard(request["pid"])
        else:
            answer = os.fork()
            if answer == 0:
                return dict(request)
            running.add(answer)
        print(json.dumps(answer), flush=True)  # noqa: T201  (the protocol)
    for pid in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    sys.exit()


def exit_status(pid: int) -> int | None:
    """Return the exit status of a child as `subprocess` does; None while it runs."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def run_command(request: dict[str, Any]) -> None:
    """Run a management command in this process."""
    os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    with Path(request["log"]).open("ab") as log, Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    sys.argv = ["manage.py", *request["arguments"]]
    runpy.run_path("manage.py", run_name="__main__")


if __name__ == "__main__":
    for package in PACKAGES:
        import_module(package)
    gc.freeze()  # a collection in a child would copy all their memory
    run_command(serve())
