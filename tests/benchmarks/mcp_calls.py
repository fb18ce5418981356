"""Measure calls over MCP stdio, against a server of the SDK that returns the same answers from
memory: a run, the profile, and a chunk of an artifact."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.mcp_start import INITIALIZE, ROOT
from tests.benchmarks.rounds import alternate, ratio, report, spread

CALLS = 200
CHUNK = 262_144  # bytes
Requests = dict[str, dict[str, Any]]


class Host:
    """An agent host: the client at the other end of a server's pipes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self._last_id = process, 0
        self._send(INITIALIZE)
        self._read()
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Call a tool and return its structured answer."""
        self._last_id += 1
        params = {"name": tool, "arguments": arguments}
        self._send(
            {"jsonrpc": "2.0", "id": self._last_id, "method": "tools/call", "params": params}
        )
        result = json.loads(self._read())["result"]
        assert not result.get("isError"), result
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    def p50_ms(self, tool: str, arguments: Mapping[str, Any]) -> float:
        """Return the median time of a call."""
        durations = []
        for _ in range(CALLS):
            started = time.perf_counter()
            self.call(tool, arguments)
            durations.append((time.perf_counter() - started) * 1000)
        return statistics.median(durations)

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> bytes:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server has ended"
        return line


@contextmanager
def start_host(command: list[str], env: Mapping[str, str]) -> Iterator[Host]:
    """Start a server and return a host that is connected to it."""
    with subprocess.Popen(
        [sys.executable, *command],
        env=env,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield Host(process)
        finally:
            process.kill()


def fill() -> Requests:
    """Store a run and an artifact, and return the calls that read them."""
    import django

    django.setup()
    from django.core.management import call_command

    from artifacts.models import Artifact
    from artifacts.services import artifact_rows, store_blob
    from decisions.foundation.infra.ids import new_id
    from decisions.identity.principals import local_principal
    from runs.models import Run

    call_command("migrate", verbosity=0)
    principal, now = local_principal(), datetime.now(UTC)
    run = Run.objects.create(
        id=new_id("run_"),
        tenant_id=principal.tenant_id,
        workspace_id=principal.workspace_id,
        principal_id=principal.id,
        trust="local",
        template_id="batch_extract_pages",
        template_version="1.0.0",
        mode="async",
        inputs={"urls": ["https://example.com/"]},
        session_id=new_id("sess_"),
        total_steps=10,
        done_steps=10,
        timeout_ms=600_000,
        status="succeeded",
        ready=False,
        result={"rows": list(range(50))},
        created_at=now,
        started_at=now,
        updated_at=now,
        ended_at=now,
    )
    blob = store_blob(b"x" * CHUNK, name="page.txt", mime_type="text/plain", kind="file")
    rows = artifact_rows([(blob, None)], owner=run, run_id=run.id)
    Artifact.objects.bulk_create(rows)
    return {
        "get_task_run": {"runId": run.id},
        "get_runtime_profile": {},
        "get_artifact": {"artifactId": blob.artifact_id},
    }


def main() -> None:
    """Measure and report."""
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {
            "CONTINUITY_HOME": home,
            "DATABASE_URL": f"sqlite:///{home}/bench.sqlite3",
            "CONTINUITY_SECRET_KEYS": "bench-" + "k" * 40,
            "DJANGO_SETTINGS_MODULE": "config.settings",
        }
        requests = fill()
        with start_host(["manage.py", "mcp_stdio"], os.environ) as ours:
            answers = {tool: ours.call(tool, arguments) for tool, arguments in requests.items()}
            answers_file = Path(home, "answers.json")
            answers_file.write_text(json.dumps(answers))
            floor_command = ["-m", "tests.benchmarks.floor_mcp", str(answers_file)]
            with start_host(floor_command, os.environ) as floor:
                for tool, arguments in requests.items():
                    compare(tool, arguments, ours, floor)


def compare(tool: str, arguments: Mapping[str, Any], ours: Host, floor: Host) -> None:
    """Report the calls of one tool."""
    measurements = alternate(
        {
            "ours": lambda: ours.p50_ms(tool, arguments),
            "floor": lambda: floor.p50_ms(tool, arguments),
        }
    )
    extra_ms = [a - b for a, b in zip(measurements["ours"], measurements["floor"], strict=True)]
    report(
        "mcp_calls",
        tool=tool,
        unit="ms, p50",
        ours=spread(measurements["ours"]),
        floor=spread(measurements["floor"]),
        ratio=ratio(measurements["ours"], measurements["floor"]),
        extra_ms=spread(extra_ms),
        goals={
            "get_runtime_profile": "ratio <= 1.3",
            "get_task_run": "extra_ms <= 2",
            "get_artifact": "ratio <= 1.11",
        }[tool],
    )


if __name__ == "__main__":
    main()
