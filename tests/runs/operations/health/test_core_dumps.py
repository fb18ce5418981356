"""Core dumps: a process of the product that crashes writes none, and doctor reports the limit."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runs.operations.health.checks import check_core_dumps
from tests.support.installation.temporary_home import ROOT

CANARY = "canary-in-memory-" + "4711" * 4
# A command of the product whose child process has a secret in its memory and crashes.
CRASH = """
import json, os, resource, subprocess, sys
code = "import os, signal; secret = os.environ['SECRET'] * 2; os.kill(os.getpid(), signal.SIGSEGV)"
child = subprocess.Popen([sys.executable, "-c", code])
_, status = os.waitpid(child.pid, 0)
print(json.dumps({"signal": os.WTERMSIG(status), "dumped": os.WCOREDUMP(status),
                  "limit": resource.getrlimit(resource.RLIMIT_CORE)}))
"""


def crash(folder: Path) -> dict[str, object]:
    """Run the command in a folder, where most kernels write a core dump, with the highest limit
    that this process may set."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "shell", "--no-imports", "-c", CRASH],
        cwd=folder,
        env={**os.environ, "CONTINUITY_HOME": str(folder / "home"), "SECRET": CANARY},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)),
        capture_output=True,
        text=True,
        check=True,
    )
    crashed: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return crashed


def test_a_child_process_that_crashes_leaves_no_core_dump(tmp_path: Path) -> None:
    crashed = crash(tmp_path)
    assert (crashed["signal"], crashed["dumped"]) == (11, False)
    assert all(limit in (0, 1) for limit in crashed["limit"])  # type: ignore[attr-defined]
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or CANARY.encode() not in file.read_bytes(), file


@pytest.mark.parametrize(
    ("limit", "verdict"), [(0, "ok"), (1, "ok"), (65_536, "bad"), (resource.RLIM_INFINITY, "bad")]
)
def test_doctor_reports_processes_that_may_write_core_dumps(
    monkeypatch: pytest.MonkeyPatch, limit: int, verdict: str
) -> None:
    def kernel_limit(pid: int, what: int) -> tuple[int, Any]:
        return limit, resource.RLIM_INFINITY

    monkeypatch.setattr(resource, "prlimit", kernel_limit)
    found = check_core_dumps()
    assert found.verdict == verdict
    assert (str(os.getpid()) in found.what) == (verdict == "bad")
