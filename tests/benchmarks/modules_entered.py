"""Count the modules of ours that one submit over REST (from view to answer) and one tool call of a
run (from the worker's task to the end of the run) enter, in a process that did both before.

A module counts if one of its functions was entered, on any thread except those that the worker
starts for itself (its heartbeat and the like). A function is a `def` or `lambda` of the file; a
coroutine that resumes after an await is not entered again. On SQLite;
CONTINUITY_TEST_DATABASE=postgresql: on PostgreSQL. `--list` adds the calls into each module, in the
order in which they were first entered.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FrameType

from tests.benchmarks.rounds import report
from tests.services import postgres_server, redis_server

ROOT = Path(__file__).parent.parent.parent
PARTS = ("config", "mcp_server", "runs", "runners", "artifacts", "decisions")
OURS = tuple(f"{ROOT / part}/" for part in PARTS)
PAGES = {"templateId": "batch_extract_pages", "inputs": {"urls": ["https://example.com/"]}}
READ = {"name": "read_file", "args": {"path": "notes.txt"}}
ONE_CALL = {"templateId": "call_tools", "inputs": {"calls": [READ]}}
ASYNC = {"options": {"mode": "async"}}


class CallRecorder:
    """Records which functions of ours are entered, on this thread and on threads that start
    later."""

    def __init__(self) -> None:
        self._recorded: list[CodeType] = []
        sys.setprofile(self._profile)
        threading.setprofile(self._profile)

    def _profile(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(OURS):
            return
        # A frame that starts is at a RESUME of argument 0, a frame that resumes at another
        # RESUME.
        is_start = code.co_code[frame.f_lasti + 1] & 3 == 0
        if is_start and (code.co_name == "<lambda>" or not code.co_name.startswith("<")):
            self._recorded.append(code)

    def entered(self, work: Callable[[], object], before: Callable[[], object]) -> list[CodeType]:
        """Call the function a few times and return every call of the last time, by the called
        function."""
        for _ in range(4):
            before()
            self._recorded = []
            work()
            time.sleep(0.5)  # for threads that still work
        return self._recorded.copy()


def measure() -> dict[str, list[CodeType]]:
    """Return what each enters, on the database that the environment names."""
    import django

    django.setup()
    from django.apps import apps
    from django.conf import settings
    from django.core.management import call_command
    from django.test import Client

    from runs.worker.worker import WorkerProcess

    settings.LEASE_BEAT_S = settings.POLL_S = 60.0  # longer than the whole benchmark
    call_command("migrate", verbosity=0)
    printed = io.StringIO()
    call_command("create_token", "bench", trust="local", stdout=printed, stderr=io.StringIO())
    headers = {"Authorization": f"Bearer {printed.getvalue().strip()}"}
    client = Client(headers=headers, SERVER_NAME="127.0.0.1")

    def submit(body: Mapping[str, object]) -> None:
        answer = client.post("/api/v1/runs", {**body, **ASYNC}, "application/json")
        assert answer.status_code == 202, answer.content

    worker = WorkerProcess()
    worker.open()
    recorder = CallRecorder()
    call = recorder.entered(worker.work, before=lambda: submit(ONE_CALL))
    assert {run.status for run in apps.get_model("runs", "Run").objects.all()} == {"succeeded"}
    return {"submit": recorder.entered(lambda: submit(PAGES), lambda: None), "tool_call": call}


def summary(codes: list[CodeType]) -> Mapping[str, object]:
    """Return the reported summary of the functions that were entered."""
    calls = Counter(Path(code.co_filename).relative_to(ROOT).as_posix() for code in codes)
    printed = {"modules": len(calls), "functions": len(set(codes)), "calls": len(codes)}
    return {**printed, "calls_into": calls} if "--list" in sys.argv else printed


def main() -> None:
    """Measure and report."""
    database = os.environ.get("CONTINUITY_TEST_DATABASE", "sqlite")
    with contextlib.ExitStack() as stack:
        home, folder = (stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2))
        Path(folder, "notes.txt").write_text("One line.\n")
        url = stack.enter_context(postgres_server()).url if database == "postgresql" else ""
        os.environ |= {
            "CONTINUITY_HOME": home,
            "CONTINUITY_WORKSPACE": folder,
            "CONTINUITY_SECRET_KEYS": "bench-" + "k" * 40,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "REDIS_URL": stack.enter_context(redis_server()).url,
            "DATABASE_URL": url,
        }
        entered = measure()
    report("modules_entered", database=database, **{n: summary(c) for n, c in entered.items()})


if __name__ == "__main__":
    main()
