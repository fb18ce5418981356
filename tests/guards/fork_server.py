"""A process that has imported the third-party packages, and forks for each test run of a guard.

Importing them takes most of the time of a short test run. The product and the tests are imported by
the child, from a copy of the tree with one protection removed. Reads a line of JSON for each run
from standard input (`arguments` of pytest, `environment`, `output`, `limit_s`) and answers with a
line when the run is over.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

POLL_S = 0.01


def preload(modules: list[str]) -> None:
    """Import the modules that need neither Django's settings nor another import before them."""
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def serve(modules_file: str) -> None:
    """Answer runs until standard input ends."""
    preload(json.loads(Path(modules_file).read_text()))
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            run(request)
        wait(child, request["limit_s"])
        print("over", flush=True)  # noqa: T201


def run(request: dict[str, Any]) -> None:
    """Run pytest in this child and exit."""
    os.setsid()
    with Path(request["output"]).open("w") as output, Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.environ.clear()
    os.environ.update(request["environment"])
    import pytest

    sys.argv = ["pytest", *request["arguments"]]
    code = 1
    try:
        code = int(pytest.main(request["arguments"]))
    except BaseException:  # noqa: BLE001  (this child must not go on as the server)
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def wait(child: int, limit_s: float) -> None:
    """Wait for the child; kill it and its children at the limit."""
    until = time.monotonic() + limit_s
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return
        time.sleep(POLL_S)


if __name__ == "__main__":
    serve(sys.argv[1])
