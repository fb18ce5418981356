"""Measure the admin's lists of runs, artifacts and audit entries with a thousand and with a hundred
thousand rows of each: the first page, filtered, searched, and a page in the middle."""

from __future__ import annotations

import os
import statistics
import time
from typing import Any

from tests.benchmarks.list_runs import fill as fill_runs
from tests.benchmarks.rounds import report
from tests.services import PostgresServer, redis_server, served

FEW, MANY = 1_000, 100_000
CALLS = 7
ARTIFACTS = """
INSERT INTO artifacts_artifact (id, tenant_id, workspace_id, run_id, name, kind, mime_type, sha256,
    size_bytes, created_at)
SELECT 'art_' || lpad(n::text, 12, '0'), 'ten_bench', 'ws_big', 'run_' || lpad(n::text, 12, '0'),
    'page-' || n || '.txt', 'file', 'text/plain', md5(n::text), 1000,
    now() - n * interval '1 ms'
FROM generate_series(1, {rows}) n"""
AUDIT = """
INSERT INTO decisions_auditentry (created_at, tenant_id, workspace_id, actor, action,
    resource_type, resource_id, metadata, mac)
SELECT now() - n * interval '1 ms', 'ten_bench', 'ws_big', 'token:bench',
    (ARRAY['run.created', 'run.started', 'run.succeeded'])[n % 3 + 1], 'run',
    'run_' || lpad(n::text, 12, '0'), '{{}}', ''
FROM generate_series(1, {rows}) n"""
PAGES = {
    "runs": "/admin/runs/run/",
    "runs of a status": "/admin/runs/run/?status=failed",
    "runs of a template": "/admin/runs/run/?template=search_extract",
    "a run searched": "/admin/runs/run/?q=run_000000000500",
    "runs, page 5": "/admin/runs/run/?p=5",
    "artifacts": "/admin/artifacts/artifact/",
    "audit": "/admin/decisions/auditentry/",
    "dashboard": "/admin/",
}


def page_ms(client: Any, path: str) -> float:
    """Return the median time of a page."""
    durations = []
    for _ in range(CALLS + 1):
        started = time.perf_counter()
        response = client.get(path)
        durations.append((time.perf_counter() - started) * 1000)
        assert response.status_code == 200, (path, response.status_code, response.content[:500])
    return round(statistics.median(durations[1:]), 1)


def fill(rows: int) -> None:
    """Fill the tables with this many rows each."""
    from django.db import connection

    fill_runs(rows)
    with connection.cursor() as cursor:
        cursor.execute(ARTIFACTS.format(rows=rows))
        cursor.execute(AUDIT.format(rows=rows))
        cursor.execute("VACUUM ANALYZE")


def times_of_pages(database: str, rows: int) -> dict[str, float]:
    """Return the time of each page in a separate database."""
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client

    from tests.benchmarks.list_runs import use_database

    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database}")
    use_database(database)
    call_command("migrate", verbosity=0)
    fill(rows)
    client = Client(headers={"host": "localhost"})
    client.force_login(User.objects.create_superuser("boss"))
    return {name: page_ms(client, path) for name, path in PAGES.items()}


def main() -> None:
    """Measure and report."""
    with served(PostgresServer, PostgresServer.make) as server, redis_server() as redis:
        os.environ["DATABASE_URL"] = server.url
        os.environ["CONTINUITY_SECRET_KEYS"] = "bench-" + "k" * 40
        os.environ["REDIS_URL"] = redis.url
        os.environ["CONTINUITY_LOG_LEVEL"] = "ERROR"
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        import django

        django.setup()
        few, many = times_of_pages("few", FEW), times_of_pages("many", MANY)
    report(
        "admin_lists",
        unit="ms",
        rows=[FEW, MANY],
        few=few,
        many=many,
        ratio={name: round(many[name] / few[name], 2) for name in PAGES},
    )


if __name__ == "__main__":
    main()
