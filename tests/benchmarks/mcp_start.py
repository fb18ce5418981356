"""Measure from the start of `manage.py mcp_stdio` to its answer to initialize, against a process
that only imports Django and mcp."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.rounds import alternate, ratio, report, spread

ROOT = Path(__file__).parent.parent.parent
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}
IMPORTS = "import django; import mcp.server.lowlevel, mcp.server.stdio; print()"


def ms_to_first_line(command: list[str], env: dict[str, str], request: bytes) -> float:
    """Return the milliseconds from start to the first line of the answer."""
    start = time.perf_counter()
    with subprocess.Popen(
        command,
        env=env,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request)
        process.stdin.flush()
        answer = process.stdout.readline()
        elapsed_ms = (time.perf_counter() - start) * 1000
        if not answer:
            raise RuntimeError("no answer")
        process.kill()
    return elapsed_ms


def main() -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory() as home:
        # With its own database, mcp_stdio starts no stack in the background.
        env = {
            **os.environ,
            "CONTINUITY_HOME": home,
            "DATABASE_URL": f"sqlite:///{home}/bench.sqlite3",
            "CONTINUITY_SECRET_KEYS": "bench-" + "k" * 40,
        }
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        request = json.dumps(INITIALIZE).encode() + b"\n"
        ours = [sys.executable, "manage.py", "mcp_stdio"]
        floor = [sys.executable, "-c", IMPORTS]
        for command in (ours, floor):
            ms_to_first_line(command, env, request)
        measurements = alternate(
            {
                "ours": lambda: ms_to_first_line(ours, env, request),
                "imports": lambda: ms_to_first_line(floor, env, request),
            },
            rounds=9,
        )
    report(
        "mcp_start",
        unit="ms",
        ours=spread(measurements["ours"]),
        imports=spread(measurements["imports"]),
        ratio=ratio(measurements["ours"], measurements["imports"]),
        goals={"ratio": "<= 1.15"},
    )


if __name__ == "__main__":
    main()
