"""Actions on many runs report what was done with each; exports and failures by cause."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from decisions.models import AuditEntry
from runs.admin.run_list import bulk
from runs.models import Run

LIST = "/admin/runs/run/"


def act(client: Client, action: str, *runs: Run, **more: str) -> dict[str, list[str]]:
    """Run an action on runs and return the ids in each group of its results."""
    selection = {"action": action, "_selected_action": [run.id for run in runs], **more}
    page = client.post(LIST, selection)
    assert page.status_code == 200
    return {
        str(group["name"]): [one.run.id for one in group["results"]]
        for group in page.context["groups"]
    }


def test_an_action_says_of_each_run_whether_it_was_done(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    failed, succeeded = make_run(status="failed"), make_run(status="succeeded")
    secret = make_run(status="failed", holds_secrets=True)
    results = act(superuser_client, "retry_selected", failed, succeeded, secret)
    assert results["Done"] == [failed.id]
    assert sorted(results["Refused"]) == sorted([succeeded.id, secret.id])
    assert act(superuser_client, "retry_selected", failed) == {"Already so": [failed.id]}
    assert act(superuser_client, "cancel_selected", succeeded) == {"Not done": [succeeded.id]}


def test_labels_are_added_and_removed_and_audited(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    one, two = make_run(status="failed", labels={"team": "a"}), make_run(labels={"env": "prod"})
    results = act(superuser_client, "label_selected", one, two, label="env=prod, -team")
    assert results == {"Done": [one.id], "Already so": [two.id]}
    assert Run.objects.get(id=one.id).labels == {"env": "prod"}
    entry = AuditEntry.objects.get(action="run.labeled")
    assert (entry.resource_id, entry.metadata) == (one.id, {"labels": {"env": "prod"}})
    assert entry.actor == "admin:boss"


@pytest.mark.parametrize("label", ["", "env", "-", "a b=1"])
def test_a_malformed_label_changes_nothing(
    superuser_client: Client, make_run: Callable[..., Run], label: str
) -> None:
    run = make_run(labels={"env": "prod"})
    selection = {"action": "label_selected", "_selected_action": [run.id], "label": label}
    page = superuser_client.post(LIST, selection, follow=True).content.decode()
    assert "Nothing was changed" in page
    assert Run.objects.get().labels == {"env": "prod"}


def test_all_runs_that_match_are_handled_up_to_the_limit_and_the_page_says_so(
    superuser_client: Client, make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "BULK_MAX", 2)
    runs = [make_run() for _ in range(3)]
    make_run(subject="other")
    selection = {"action": "cancel_selected", "_selected_action": [runs[0].id], "select_across": 1}
    page = superuser_client.post(LIST + "?q=made", selection)
    assert "More than 2 runs matched" in page.content.decode()
    assert Run.objects.filter(status="canceled", subject="made by a test").count() == 2
    assert Run.objects.get(subject="other").status == "queued"


def test_a_viewer_has_no_action_that_changes_runs(
    staff_client: Callable[..., Client], make_run: Callable[..., Run]
) -> None:
    run, viewer = make_run(), staff_client("runs.view_run")
    for action in ("cancel_selected", "retry_selected", "label_selected"):
        selection = {"action": action, "_selected_action": [run.id], "label": "env=prod"}
        viewer.post(LIST, selection)
    run.refresh_from_db()
    assert (run.status, run.labels) == ("queued", None)


def test_the_filtered_list_is_exported_as_csv_without_formulas(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    make_run(subject="=1+1", labels={"env": "prod"}, status="succeeded", active_ms=5)
    make_run(subject="other")
    answer: Any = superuser_client.get(LIST + "export/?label=env=prod")
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    text = b"".join(answer.streaming_content).decode("utf-8-sig")
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["subject"], row["labels"], row["elapsedMs"]) == ("'=1+1", "env=prod", "5")


def test_selected_runs_are_exported(superuser_client: Client, make_run: Callable[..., Run]) -> None:
    one = make_run()
    make_run()
    selection = {"action": "export_selected", "_selected_action": [one.id]}
    answer: Any = superuser_client.post(LIST, selection)
    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert len(lines) == 2
    assert one.id in lines[1]


def test_failures_are_grouped_by_cause_with_their_number_trend_and_runs(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    now = datetime.now(UTC)
    gone = {"errorCode": "STEP_EXECUTION_FAILED", "details": {"causeCode": "PAGE_GONE"}}
    for hours in (0, 0, 1):
        make_run(status="failed", error=gone, created_at=now - timedelta(hours=hours))
    make_run(status="failed", created_at=now - timedelta(hours=2))
    make_run(status="failed", error=gone, created_at=now - timedelta(days=3))
    make_run(status="failed", template_id="session_action")
    make_run(status="succeeded")
    context = superuser_client.get(LIST + "failures/").context
    shown = [(row["cause"], row["group"].number, row["trend"]) for row in context["groups"]]
    assert shown == [("PAGE_GONE", 3, "new"), ("EXECUTION_ERROR", 1, "level")]
    first = context["groups"][0]
    assert sum(bar["number"] for bar in first["bars"]) == 3
    assert superuser_client.get(first["url"]).context["cl"].result_count == 3
    assert superuser_client.get(first["bars"][-1]["url"]).context["cl"].result_count >= 1
    week = superuser_client.get(LIST + "failures/?time=week&actions=shown").context
    assert week["total"] == 6


def test_yesterdays_failures_of_a_site_are_one_group(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    noon = datetime.now(UTC).replace(hour=12) - timedelta(days=1)
    late = {"errorCode": "NAVIGATION_TIMEOUT", "message": "Too late."}
    gone = {"errorCode": "STEP_EXECUTION_FAILED", "message": "Gone."}
    for url in ("https://shop.example/1", "https://shop.example/2", "https://other.example/"):
        make_run(status="failed", error={**late, "details": {"url": url}}, created_at=noon)
    pages = [{"url": "https://shop.example/3"}, {"url": "https://shop.example/4"}]
    details = {"items": pages, "causeCodes": {"PAGE_CRASHED": 1, "PAGE_GONE": 3}}
    make_run(
        status="failed",
        template_id="agent_task",
        error={**gone, "details": details},
        result_summary="0 of 4 pages read",
        created_at=noon + timedelta(hours=1),
    )
    make_run(status="failed", error=late, created_at=noon + timedelta(days=1))
    page = superuser_client.get(LIST + "failures/?time=yesterday&by=site")
    shop, other = page.context["groups"]
    assert (shop["cause"], shop["group"].number) == ("shop.example", 3)
    assert shop["shares"] == [("NAVIGATION_TIMEOUT", 2), ("PAGE_GONE", 1)]
    assert (shop["message"], "0 of 4" in page.content.decode()) == ("Gone.", False)
    assert superuser_client.get(shop["url"]).context["cl"].result_count == 3
    assert (other["cause"], other["group"].number) == ("other.example", 1)
    by_cause = superuser_client.get(LIST + "failures/?time=yesterday").context["groups"]
    assert [(row["cause"], row["shares"]) for row in by_cause] == [
        ("NAVIGATION_TIMEOUT", [("shop.example", 2), ("other.example", 1)]),
        ("PAGE_GONE", [("shop.example", 1)]),
    ]
    listed = superuser_client.get(f"{LIST}?time=yesterday").context["cl"]
    assert listed.result_count == 4


def test_the_page_of_failures_takes_as_many_queries_for_many_runs(
    superuser_client: Client,
    make_run: Callable[..., Run],
    django_assert_max_num_queries: Callable[..., Any],
) -> None:
    for n in range(20):
        make_run(status="failed", error={"errorCode": f"CODE_{n}"})
    with django_assert_max_num_queries(8):
        assert len(superuser_client.get(LIST + "failures/").context["groups"]) == 20
