"""The list of runs: searched by index, in a fixed number of queries, without a count."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from decisions.identity.principals import Principal
from runs.models import Run

LIST = "/admin/runs/run/"


def ids_in(client: Client, query: str) -> set[str]:
    """Return the runs that the list displays for a query."""
    page = client.get(LIST + query)
    assert page.status_code == 200
    return {run.id for run in page.context["cl"].result_list}


def queries_of(client: Client, path: str) -> list[str]:
    """Return the statements that a page executes."""
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return [query["sql"] for query in captured.captured_queries]


def test_fifty_runs_take_as_many_queries_as_one_and_there_is_no_count_query(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    make_run()
    few = queries_of(superuser_client, LIST)
    for _ in range(50):
        make_run(status="failed")
    many = queries_of(superuser_client, LIST)
    assert len(many) == len(few) <= 8
    assert not [sql for sql in many if "COUNT(" in sql.upper()]


def test_the_list_reads_no_column_that_may_be_long(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    make_run(status="succeeded", result={"text": "long"})
    rows = [sql for sql in queries_of(superuser_client, LIST) if 'FROM "runs_run"' in sql]
    assert rows
    assert not [sql for sql in rows if '"runs_run"."result"' in sql or '"inputs"' in sql]


def test_pages_link_to_the_next_without_a_count(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    run_ids = [make_run().id for _ in range(51)]
    first, second = superuser_client.get(LIST), superuser_client.get(LIST + "?p=2")
    assert first.context["cl"].has_next
    assert "?p=2" in first.content.decode()
    assert not second.context["cl"].has_next
    shown = [run.id for page in (first, second) for run in page.context["cl"].result_list]
    assert sorted(shown) == sorted(run_ids)


def test_a_facet_cannot_be_requested(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    make_run()
    queries = queries_of(superuser_client, LIST + "?_facets=True")
    assert not [sql for sql in queries if "COUNT(" in sql.upper()]


@pytest.mark.parametrize("column", ["id", "session_id", "lease_owner"])
def test_a_run_is_found_by_its_own_id(
    superuser_client: Client, make_run: Callable[..., Run], column: str
) -> None:
    run = make_run(status="running", lease_owner="wrk_1")
    make_run()
    assert ids_in(superuser_client, f"?q={getattr(run, column)}") == {run.id}


def test_a_run_is_found_by_the_start_of_its_id(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    run = make_run(id="run_0abc123")
    make_run(id="run_0xyz999")
    assert ids_in(superuser_client, "?q=run_0abc") == {run.id}
    assert ids_in(superuser_client, "?q=0abc") == {run.id}
    assert ids_in(superuser_client, "?q=%25") == set()


def test_a_run_is_found_by_an_artifact(
    superuser_client: Client, make_run: Callable[..., Run], make_artifact: Callable[..., str]
) -> None:
    run = make_run()
    make_run()
    assert ids_in(superuser_client, f"?q={make_artifact(b'x', run_id=run.id)}") == {run.id}
    assert ids_in(superuser_client, "?q=art_unknown") == set()


def test_filters_return_only_matching_runs(
    superuser_client: Client, make_run: Callable[..., Run], outsider: Principal
) -> None:
    now = datetime.now(UTC)
    waiting = {"waiting_for": {"type": "answer", "question": "Which?"}, "ready": False}
    runs: dict[str, Run] = {
        "?status=failed": make_run(status="failed"),
        "?status=waiting": make_run(status="running", **waiting),
        "?template=batch_extract_pages": make_run(template_id="batch_extract_pages"),
        "?time=older": make_run(created_at=now - timedelta(days=31)),
    }
    other_workspace_run = make_run(tenant_id=outsider.tenant_id, workspace_id=outsider.workspace_id)
    runs[f"?workspace={outsider.workspace_id}"] = other_workspace_run
    for query, run in runs.items():
        assert ids_in(superuser_client, query) == {run.id}, query
    assert len(ids_in(superuser_client, "?time=hour")) == 4


def test_an_empty_list_says_what_fills_it_or_that_no_run_matches(
    superuser_client: Client, staff_client: Callable[..., Client], make_run: Callable[..., Run]
) -> None:
    page = superuser_client.get(LIST).content.decode()
    assert "No runs yet" in page
    assert page.count('href="/admin/runs/run/new/"') == 2
    reader = staff_client("runs.view_run").get(LIST).content.decode()
    assert "No runs yet" in reader
    assert 'href="/admin/runs/run/new/"' not in reader
    make_run()
    for query in ("?error=NOPE", "?q=nothing"):
        assert "No runs match" in superuser_client.get(LIST + query).content.decode()


def test_the_result_is_shown_without_the_marks_of_markdown(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    make_run(status="succeeded", result_summary="The **best** is [A](https://a.example/x).")
    page = superuser_client.get(LIST).content.decode()
    assert ">The best is A.</span>" in page
    assert "**" not in page


def test_a_failed_run_shows_its_code_and_a_waiting_one_its_status(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    error: dict[str, Any] = {"errorCode": "RUN_TIMEOUT", "message": "<b>late</b>"}
    make_run(status="failed", error=error, result_summary="<b>late</b>")
    make_run(status="running", ready=False, waiting_for={"type": "answer"})
    page = superuser_client.get(LIST).content.decode()
    assert "RUN_TIMEOUT" in page
    assert "waiting for a person" in page
    assert "<b>late</b>" not in page
    assert "&lt;b&gt;late" in page
