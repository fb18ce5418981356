"""Measure every page of the admin through the real server: its lists full, ten thousand runs and
audit rows.

For each page: the median and p95 of a warm GET, the CPU time that the web process needs for one,
and its bytes on the wire. CPU time is comparable also while other programs are running. Arguments:
the number of requests for each page (20), and texts that the paths contain to measure only these
pages.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.benchmarks.mcp_start import ROOT
from tests.benchmarks.rounds import percentiles, report
from tests.services import PostgresServer, free_port, redis_server, served

ROWS, ROWS_OF_A_KIND, STEPS = 10_000, 60, 20
REQUESTS, WARM_UP = 20, 3
MOST_MS, MOST_BYTES = 100, 60_000
SEARCHES = (
    "/admin/runs/run/?status=failed",
    "/admin/runs/run/?q=登录",
    "/admin/runs/run/?q=docs-17.example",
    "/admin/runs/run/?p=5",
    "/admin/decisions/auditentry/?outcome=refused",
)


def fill(folder: Path) -> None:
    """Fill the lists: many runs and audit rows, and enough rows of every kind for a full page."""
    from django.db import connection

    from tests.benchmarks import admin_lists, run_search

    run_search.fill(ROWS)
    with connection.cursor() as cursor:
        cursor.execute(admin_lists.AUDIT.format(rows=ROWS))
        cursor.execute(admin_lists.ARTIFACTS.format(rows=ROWS))
    fill_every_kind(folder)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def fill_every_kind(folder: Path) -> None:
    """Create rows of every kind in the local workspace."""
    from django.contrib.auth.models import User

    from decisions.identity.principals import local_principal
    from runs.conversations.services import create_task
    from tests.support.admin.every_page import RowsOfEveryKind

    User.objects.create_superuser("boss")
    principal = local_principal()
    for number in range(ROWS_OF_A_KIND):
        run = make_run(principal)
        make_artifact(principal, run.id)
        create_task(principal=principal, message=f"Find the opening hours of library {number}.")
        RowsOfEveryKind(principal, run, folder).create(number)


def make_run(principal: Any) -> Any:
    """Create a failed run with steps."""
    from decisions.foundation.infra.ids import new_id
    from runs.models import RunStep, RunTerms
    from runs.search.terms import terms_of
    from tests.benchmarks.run_search import rows

    run, _ = next(rows(ROWS))
    run.tenant_id, run.workspace_id = principal.tenant_id, principal.workspace_id
    run.id, run.principal_id, run.status = new_id("run_"), principal.id, "failed"
    run.error = {"errorCode": "NAVIGATION_TIMEOUT", "message": "The page did not load in 30 s."}
    run.error_code, run.total_steps, run.done_steps = "NAVIGATION_TIMEOUT", STEPS, STEPS
    run.save(force_insert=True)
    RunTerms.objects.create(run=run, terms=terms_of(run))
    RunStep.objects.bulk_create(
        RunStep(
            run=run,
            index=index,
            name=f"read https://pages.example/{index}.html",
            effect="read",
            effect_key=f"{run.id}:{index}",
            input={"url": f"https://pages.example/{index}.html"},
            status="succeeded",
            attempts=1,
            started_at=run.created_at,
            ended_at=run.created_at,
            output={"title": f"Title {index}"},
        )
        for index in range(STEPS)
    )
    return run


def make_artifact(principal: Any, run_id: str) -> None:
    """Store an artifact of a run."""
    from artifacts.models import Artifact
    from artifacts.services import artifact_rows, store_blob
    from decisions.authorization.authorize import tool_call_request

    blob = store_blob(b"a text", name="page.txt", mime_type="text/plain", kind="file")
    owner = tool_call_request(principal, "bench", {})
    Artifact.objects.bulk_create(artifact_rows([(blob, None)], owner=owner, run_id=run_id))


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of another process, all of its threads."""
    return time.clock_gettime((~pid << 3) | 2)  # Linux: the id of the CPU clock of a process


class MeasuredServer:
    """The web process, signed in."""

    def __init__(self, client: httpx.Client, web: int) -> None:
        self._client, self._web = client, web

    def measure(self, path: str, requests: int) -> dict[str, float]:
        """Return times in ms and the size of a page."""
        for _ in range(WARM_UP):
            assert self._get(path).status_code == 200, path
        before, durations = cpu_seconds(self._web), []
        for _ in range(requests):
            started = time.perf_counter()
            response = self._get(path)
            durations.append((time.perf_counter() - started) * 1000)
        cpu_ms = (cpu_seconds(self._web) - before) * 1000 / requests
        return {
            **percentiles(durations),
            "cpu": round(cpu_ms, 1),
            "bytes": response.num_bytes_downloaded,
        }

    def _get(self, path: str) -> httpx.Response:
        return self._client.get(path, follow_redirects=False)


def cookies() -> dict[str, str]:
    """Return the cookies of a superuser's session."""
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client(headers={"host": "localhost"})
    client.force_login(User.objects.get(username="boss"))
    return {name: morsel.value for name, morsel in client.cookies.items()}


@contextmanager
def measured_server() -> Iterator[MeasuredServer]:
    """Start the web process on the current database, and sign in."""
    port = free_port()
    command = [sys.executable, "manage.py", "serve", "--port", str(port)]
    address = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as web:
        try:
            with httpx.Client(base_url=address, cookies=cookies(), timeout=60) as client:
                wait_until_ready(client)
                yield MeasuredServer(client, web.pid)
        finally:
            web.terminate()


def wait_until_ready(client: httpx.Client) -> None:
    """Wait until the server answers."""
    for _ in range(300):
        try:
            if client.get("/healthz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise TimeoutError("the server did not start")


def main() -> None:
    """Measure and report."""
    arguments = sys.argv[1:]
    requests = next((int(text) for text in arguments if text.isdigit()), REQUESTS)
    parts = [text for text in arguments if not text.isdigit()]
    with (
        tempfile.TemporaryDirectory() as home,
        tempfile.TemporaryDirectory() as project,
        served(PostgresServer, PostgresServer.make) as server,
        redis_server() as redis,
    ):
        set_environment(home, project, server.url, redis.url)
        results = measure_pages(Path(project), requests, parts)
    report(
        "admin_pages",
        unit="ms and bytes of a warm GET",
        rows=ROWS,
        pages=results,
        goals={"p50": f"<= {MOST_MS}", "bytes of /admin/runs/run/": f"<= {MOST_BYTES}"},
        missed=[path for path, of_page in results.items() if of_page["p50"] > MOST_MS],
    )


def set_environment(home: str, project: str, database_url: str, redis_url: str) -> None:
    """Set the environment of this process and of the server, and load Django."""
    os.environ.update(
        DATABASE_URL=database_url,
        REDIS_URL=redis_url,
        CONTINUITY_HOME=home,
        CONTINUITY_SECRET_KEYS="bench-" + "k" * 40,
        CONTINUITY_LOG_LEVEL="ERROR",
        CONTINUITY_LLM_MODEL="none",  # tasks can be created; no worker executes them
        CONTINUITY_WORKSPACE_ROOTS=project,
        DJANGO_SETTINGS_MODULE="config.settings",
    )
    import django

    django.setup()


def measure_pages(folder: Path, requests: int, parts: list[str]) -> dict[str, dict[str, float]]:
    """Fill the database, and return the measurements of the pages whose paths contain a part."""
    from django.core.management import call_command

    from runs.queue.slots import ensure_slots
    from tests.support.admin.every_page import further_pages, pages

    call_command("migrate", verbosity=0)
    ensure_slots()
    fill(folder)
    paths = dict.fromkeys([*pages(), *further_pages(), *SEARCHES])
    chosen = [path for path in paths if not parts or any(part in path for part in parts)]
    with measured_server() as measured:
        return {path: measured.measure(path, requests) for path in chosen}


if __name__ == "__main__":
    main()
