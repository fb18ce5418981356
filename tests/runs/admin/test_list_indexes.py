"""The long lists of the admin read their rows through an index, whatever the size of the log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from decisions.audit.record import AuditEvent, entry_for
from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runs.models import Run

AUDIT, RUNS = "/admin/decisions/auditentry/", "/admin/runs/run/"
NOW = datetime.now(UTC)


@pytest.fixture
def long_log(principal: Principal) -> None:
    """Create an audit log in which matching rows are rare."""
    rows = []
    for n in range(4000):
        event = AuditEvent("run.queued", f"token:{n % 50}", "run", f"run_{n}", "t", "w")
        rows.append(entry_for(event))
        rows[-1].created_at = NOW - timedelta(days=60) + timedelta(minutes=n)
    rows[100].action = "run.refused"
    rows[-1].created_at = NOW - timedelta(minutes=5)
    AuditEntry.objects.bulk_create(rows)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def statements(client: Client, path: str) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return [query["sql"] for query in captured.captured_queries]


def plans(client: Client, path: str, table: str) -> str:
    """Return the query plans of a page's reads from a table."""
    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
    found = []
    with connection.cursor() as cursor:
        for sql in statements(client, path):
            if f'FROM "{table}"' in sql:
                cursor.execute(explain + sql)
                found += [str(row) for row in cursor.fetchall()]
    assert found
    return "\n".join(found)


def test_the_audit_log_is_searched_by_an_index(superuser_client: Client, long_log: None) -> None:
    for query, index in {
        "?time=hour": "audit_time",
        "?time=older": "audit_time",
        "?q=token:7": "audit_actor",
        "?outcome=refused": "audit_action",
        "?action=run.refused": "audit_action",
        "?q=run_77": "audit_resource",
    }.items():
        plan = plans(superuser_client, AUDIT + query, "decisions_auditentry")
        assert index in plan, query
        assert "Seq Scan on decisions_auditentry" not in plan, query
        queries = statements(superuser_client, AUDIT + query)
        assert len(queries) <= 9, query
        assert not [sql for sql in queries if "COUNT(" in sql.upper()], query


def test_the_filters_of_the_audit_log_return_only_matching_rows(
    superuser_client: Client, long_log: None
) -> None:
    def shown(query: str) -> set[str]:
        return {
            row.resource_id for row in superuser_client.get(AUDIT + query).context["cl"].result_list
        }

    assert shown("?time=hour") == {"run_3999"}
    assert len(shown("?time=older")) == 50
    assert "run_3998" in shown("?time=older")
    assert shown("?outcome=refused") == {"run_100"}


# SQLite does not prove that a bound value is among those of a partial index.
ENDED_BADLY = "run_ended_badly" if connection.vendor == "postgresql" else "run_newest_submitted"


def test_the_list_of_runs_is_searched_by_an_index(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    one = make_run(status="succeeded", hidden_at=NOW)
    columns = {field.attname: getattr(one, field.attname) for field in Run._meta.fields}
    rows = [Run(**{**columns, "id": f"run_{n}", "session_id": f"sess_{n}"}) for n in range(3000)]
    for n, run in enumerate(rows):
        run.created_at = NOW - timedelta(seconds=n)
        if n % 1000 == 999:
            run.template_id, run.status = "batch_extract_pages", "failed"
            run.error = {"errorCode": "RUN_TIMEOUT"}
    Run.objects.bulk_create(rows)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    for query, index in {
        "?q=sess_42": "run_by_session",
        "": "run_newest_submitted",
        "?actions=shown": "run_newest_of_all",
        "?sort=longest": "run_longest",
        "?status=failed": ENDED_BADLY,
    }.items():
        plan = plans(superuser_client, RUNS + query, "runs_run")
        assert index in plan, query
        assert "Seq Scan on runs_run" not in plan, query
        assert "SORT" not in plan.upper() or query.startswith("?q="), query
