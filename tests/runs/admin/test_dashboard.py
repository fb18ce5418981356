"""The admin's first page: running, waiting and failed runs, and the workers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.models import Run, Slot, Worker
from runs.statistics.folding import fold_statistics


def page_text(client: Client, path: str = "/admin/") -> str:
    """Return the page's text."""
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def section(page: str, name: str) -> str:
    """Return one part of the page."""
    return page.partition(f'data-part="{name}"')[2].partition("data-part=")[0]


def create_worker(**columns: object) -> Worker:
    """Create a worker's row."""
    now = datetime.now(UTC)
    return Worker.objects.create(
        **{"id": "wrk_01kb3x5j2e6s9w1z", "process": "p", "host": "laptop", "started_at": now}
        | columns
    )


def test_an_empty_installation_shows_the_first_steps(superuser_client: Client) -> None:
    page = page_text(superuser_client)
    for text in ("make run", "manage.py mcp_config", "http://testserver/api/v1/runs"):
        assert text in page, text
    assert "No worker is running" in page


def test_running_waiting_and_failed_runs_are_listed_in_their_sections(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    create_worker()
    running = make_run(
        status="running", lease_owner="wrk_01kb3x5j2e6s9w1z", done_steps=3, total_steps=4
    )
    question = {"type": "answer", "question": "Which account?"}
    waiting = make_run(status="running", ready=False, waiting_for=question)
    error = {"errorCode": "RUN_TIMEOUT", "message": "Too late.", "recovery": "Split the task."}
    failed = make_run(status="failed", error=error)
    page = page_text(superuser_client, "/admin/live/")
    assert running.id in section(page, "running")
    assert "75 %" in section(page, "running")
    assert waiting.id not in section(page, "running")
    assert waiting.id in section(page, "waiting")
    assert "Which account?" in section(page, "waiting")
    assert failed.id in section(page, "failed")
    for text in ("RUN_TIMEOUT", "Too late.", "Split the task."):
        assert text in section(page, "failed"), text


def test_queued_runs_without_a_worker_raise_a_warning(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    make_run()
    assert "No worker is running: queued runs wait" in page_text(superuser_client)
    create_worker()
    assert "No worker is running" not in page_text(superuser_client)


def test_free_slots_are_those_without_a_lease(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    Slot.objects.filter(number=0).update(run_id=make_run().id)
    assert "4 of 5 slots free" in page_text(superuser_client)


def test_the_count_of_a_long_queue_stops_at_its_limit(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    first = make_run()
    Run.objects.bulk_create(
        Run(**{**_columns(first), "id": f"run_{number:05d}"}) for number in range(1005)
    )
    assert "999+" in section(page_text(superuser_client, "/admin/live/"), "tiles")


def _columns(run: Run) -> dict[str, object]:
    return {field.attname: getattr(run, field.attname) for field in Run._meta.concrete_fields}


def test_the_last_day_is_summarized_in_numbers(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    started = datetime.now(UTC)
    for status in ("succeeded", "succeeded", "failed"):
        make_run(status=status, active_ms=3000, started_at=started)
    make_run(status="failed", created_at=started - timedelta(days=2))
    fold_statistics()
    day = superuser_client.get("/admin/").context["day"]
    assert (day["ended"], day["mean"], day["success_share"]) == (3, "3.0 s", 67)
    assert day["by_status"] == {"succeeded": 2, "failed": 1, "partial_success": 0, "canceled": 0}


def test_more_runs_take_no_more_queries(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    create_worker()
    for status in ("failed", "running", "queued"):
        make_run(status=status)
    with CaptureQueriesContext(connection) as for_few:
        page_text(superuser_client, "/admin/live/")
    for _ in range(10):
        for status in ("failed", "running", "queued"):
            make_run(status=status)
    with CaptureQueriesContext(connection) as for_many:
        page_text(superuser_client, "/admin/live/")
    assert len(for_many) <= len(for_few) <= 14


def test_a_worker_without_a_recent_heartbeat_is_reported(superuser_client: Client) -> None:
    create_worker()
    page = section(page_text(superuser_client, "/admin/live/"), "workers")
    assert "no heartbeat" not in page
    Worker.objects.update(beat_at=datetime.now(UTC) - timedelta(seconds=60))
    page = section(page_text(superuser_client, "/admin/live/"), "workers")
    assert "no heartbeat for" in page


def test_lost_workers_are_not_shown(superuser_client: Client, make_run: Callable[..., Run]) -> None:
    make_run()
    create_worker(lost_at=datetime.now(UTC))
    assert "laptop" not in section(page_text(superuser_client, "/admin/live/"), "workers")
