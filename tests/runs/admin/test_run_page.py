"""A run's page: its details, escaped, in a fixed number of queries, refreshed while it runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from decisions.identity.principals import create_token
from decisions.models import Token
from runs.models import Run, RunEvent, RunStep, Worker

EVIL = '"><svg onload=alert(1)>'
QUESTION: dict[str, Any] = {"type": "answer", "question": "Which account?"}


def page_of(client: Client, run: Run, query: str = "", part: str = "change") -> str:
    """Return the text of a run's page, or of its live parts."""
    response = client.get(f"/admin/runs/run/{run.id}/{part}/{query}")
    assert response.status_code == 200
    return response.content.decode()


def test_it_shows_status_steps_events_and_actor(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    create_token(name="build agent")
    run = make_run_with_steps(
        ["succeeded", "failed"], principal_id=f"token:{Token.objects.get().id}"
    )
    page = page_of(superuser_client, run)
    for text in ("Stepwise", "build agent", "Title 0", "NAVIGATION_TIMEOUT", "run.started"):
        assert text in page, text


def test_a_failure_shows_code_message_recovery_and_the_next_action(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    error = {
        "errorCode": "RUN_TIMEOUT",
        "message": "Too late.",
        "recovery": "Split the task.",
        "details": {"succeededSteps": 1},
    }
    action = {"tool": "run_task_template", "args": {"templateId": "t"}, "reason": "smaller"}
    page = page_of(
        superuser_client,
        make_run_with_steps(["failed"], status="failed", error=error, next_actions=[action]),
    )
    for text in ("RUN_TIMEOUT", "Too late.", "Split the task.", "run_task_template", "smaller"):
        assert text in page, text


def test_text_from_web_pages_is_escaped(
    superuser_client: Client,
    make_run_with_steps: Callable[..., Run],
    make_artifact: Callable[..., str],
) -> None:
    result = {"items": [{"url": f"https://x/{EVIL}", "title": EVIL, "success": True}]}
    run = make_run_with_steps(["succeeded"], status="succeeded", result=result, result_summary=EVIL)
    run.steps.update(name=EVIL, output={"title": EVIL}, error={"errorCode": EVIL, "message": EVIL})
    RunEvent.objects.filter(run=run).update(data={"title": EVIL})
    make_artifact(b"x", run_id=run.id, name=EVIL)
    for part in ("change", "live", "steps/0"):
        page = page_of(superuser_client, run, part=part)
        assert "<svg" not in page
        assert "&lt;svg" in page


def test_secrets_in_inputs_are_masked(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    inputs = {"startUrl": "https://me:hunter2@host/", "credentials": "***"}
    assert "hunter2" not in page_of(
        superuser_client, make_run_with_steps(["pending"], inputs=inputs)
    )


def test_a_thousand_steps_cost_as_many_queries_as_one(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    few = make_run_with_steps(["succeeded"], status="succeeded")
    many = make_run_with_steps(["succeeded"] * 1000, status="succeeded")
    with CaptureQueriesContext(connection) as for_few:
        page_of(superuser_client, few)
    with CaptureQueriesContext(connection) as for_many:
        page = page_of(superuser_client, many)
    assert len(for_many) == len(for_few) <= 16
    assert page.count('class="cty-step"') == 100
    assert len(page) < 400_000


def test_steps_are_paged_and_filtered(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    run = make_run_with_steps([*["succeeded"] * 150, "failed"])
    second = page_of(superuser_client, run, "?sp=1")
    assert second.count('class="cty-step"') == 51
    failed = page_of(superuser_client, run, "?steps=failed")
    assert failed.count('class="cty-step"') == 1
    assert "step 150 took too long" in failed
    assert (
        page_of(superuser_client, run, "?steps=nonsense&sp=x&ep=-1").count('class="cty-step"')
        == 100
    )


def test_the_page_of_an_active_run_opens_at_the_current_step(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    run = make_run_with_steps([*["succeeded"] * 120, "started", "pending"], status="running")
    assert "/120.html" in page_of(superuser_client, run)


def test_the_waterfall_reads_no_step_output(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    with CaptureQueriesContext(connection) as captured:
        page_of(superuser_client, make_run_with_steps(["succeeded"]), part="live")
    queries = [query["sql"] for query in captured.captured_queries]
    assert [sql for sql in queries if 'FROM "runs_runstep"' in sql]
    columns = [sql for sql in queries if sql.startswith("SELECT")]
    assert not [sql for sql in columns if ', "runs_runstep"."output", ' in sql]


def test_a_failed_call_in_a_step_that_continued_is_displayed_as_failed(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    run = make_run_with_steps(["succeeded", "succeeded"])
    output = {"ok": False, "error": {"code": "POLICY_DENIED", "message": "Not here."}}
    RunStep.objects.filter(run=run, index=0).update(output=output)
    page = page_of(superuser_client, run)
    assert page.count('class="cty-bar" data-tone="failed"') == 1
    assert page.count('class="cty-bar" data-tone="succeeded"') == 1
    assert "POLICY_DENIED" in page


def test_the_log_is_paged_by_seq(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    run = make_run_with_steps(["succeeded"])
    RunEvent.objects.bulk_create(
        RunEvent(run=run, seq=seq, type="tool.update", at=datetime.now(UTC))
        for seq in range(3, 251)
    )
    Run.objects.filter(id=run.id).update(last_seq=250)
    newest, oldest = page_of(superuser_client, run), page_of(superuser_client, run, "?ep=0")
    assert 'data-key="event-250"' in newest
    assert 'data-key="event-1"' not in newest
    assert 'data-key="event-1"' in oldest


def test_an_opened_step_is_displayed_in_full(
    superuser_client: Client,
    make_run_with_steps: Callable[..., Run],
    make_artifact: Callable[..., str],
) -> None:
    run = make_run_with_steps(["succeeded"])
    page = page_of(superuser_client, run, part="steps/0")
    assert "pages.example/0.html" in page
    assert "Title 0" in page
    assert superuser_client.get(f"/admin/runs/run/{run.id}/steps/7/").status_code == 404


def test_the_page_of_an_active_run_refreshes_and_that_of_an_ended_run_does_not(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    running = make_run_with_steps(["started"], status="running")
    assert 'data-live-ms="2000"' in page_of(superuser_client, running, part="live")
    ended = make_run_with_steps(["succeeded"], status="succeeded")
    assert 'data-live-ms="0"' in page_of(superuser_client, ended, part="live")


def test_a_queued_run_shows_what_it_waits_for(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    run = make_run_with_steps(["pending"])
    assert "No worker is running" in page_of(superuser_client, run)
    Worker.objects.create(id="wrk_1", process="p", host="h", started_at=datetime.now(UTC))
    assert "Number 1 in the queue" in page_of(superuser_client, run)


def test_a_waiting_run_shows_the_question(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    run = make_run_with_steps(["started"], status="running", ready=False, waiting_for=QUESTION)
    page = page_of(superuser_client, run)
    assert "Which account?" in page
    assert "waiting for a person" in page


def test_a_retry_and_its_origin_link_to_each_other(
    superuser_client: Client, make_run_with_steps: Callable[..., Run], make_run: Callable[..., Run]
) -> None:
    old = make_run_with_steps(["failed"], status="failed")
    new = make_run(retry_of=old.id)
    assert f"/admin/runs/run/{new.id}/change/" in page_of(superuser_client, old)
    assert f"/admin/runs/run/{old.id}/change/" in page_of(superuser_client, new)
    assert "/retry/" not in page_of(superuser_client, old)


def test_a_run_that_is_hidden_from_the_api_is_still_displayed(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    run = make_run_with_steps(["succeeded"], status="succeeded", hidden_at=datetime.now(UTC))
    assert "Hidden from the API" in page_of(superuser_client, run)


def test_a_result_of_an_unknown_shape_is_displayed_as_json(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    unknown_shape = {"items": [1, {"url": 3}, None], "answer": "forty-two"}
    assert "forty-two" in page_of(
        superuser_client,
        make_run_with_steps(["succeeded"], status="succeeded", result=unknown_shape),
    )


def test_worked_and_waited_time_are_apart_and_the_wait_does_not_count_as_work(
    superuser_client: Client, make_run_with_steps: Callable[..., Run]
) -> None:
    run = make_run_with_steps(["succeeded"], status="running", ready=False, waiting_for=QUESTION)
    began = run.created_at + timedelta(seconds=2)
    RunEvent.objects.create(run=run, seq=3, type="run.waiting", at=began, data=QUESTION)
    page = page_of(superuser_client, run)
    assert "<dt>Worked</dt><dd>2.0 s</dd>" in page
    assert '<dd class="run-waited">28' in page
    assert "waited for an answer" in page
