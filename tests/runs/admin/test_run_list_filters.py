"""The list of runs is searched, filtered and sorted; each operator saves views of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from runs.models import Run, SavedView

LIST = "/admin/runs/run/"
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def names_in(client: Client, query: str) -> str:
    """Return the subjects of the listed runs, in order."""
    page = client.get(LIST + query)
    assert page.status_code == 200
    return "".join(run.subject for run in page.context["cl"].result_list)


@pytest.fixture
def runs(make_run: Callable[..., Run]) -> None:
    """Create three runs with the subjects a, b and c; c is the newest."""
    error = {"errorCode": "STEP_EXECUTION_FAILED", "details": {"causeCode": "PAGE_GONE"}}
    labels = {"env": "prod", "team": "登录"}
    make_run(subject="a", created_at=NOW, status="failed", error=error, active_ms=90_000)
    make_run(subject="b", created_at=NOW + timedelta(hours=1), labels=labels, user_id="alice")
    make_run(
        subject="c",
        created_at=NOW + timedelta(hours=2),
        status="succeeded",
        active_ms=2_000,
        principal_id="token:tok_7",
    )


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", "cba"),
        ("?sort=oldest", "abc"),
        ("?sort=longest", "ac"),
        ("?sort=shortest", "ca"),
        ("?sort=odd", "cba"),
        ("?q=登录", "b"),
        ("?label=env=prod", "b"),
        ("?label=env=prod,team=登录", "b"),
        ("?label=env=test", ""),
        ("?label=env", ""),
        ("?error=STEP_EXECUTION_FAILED", "a"),
        ("?error=PAGE_GONE", "a"),
        ("?token=tok_7", "c"),
        ("?user=alice", "b"),
        ("?duration=1s", "ca"),
        ("?duration=1min", "a"),
        ("?since=2026-11-20 13:00", "cb"),
        ("?since=2026-11-20T13:00Z&until=2026-11-20T14:00:00%2B00:00", "b"),
        (f"?until={int(NOW.timestamp() * 1000) + 1}", "a"),
        ("?since=tomorrow", ""),
        ("?since=2026-11-20&status=failed&error=PAGE_GONE&sort=longest", "a"),
    ],
)
def test_the_list_is_filtered_and_sorted(
    superuser_client: Client, runs: None, query: str, names: str
) -> None:
    assert names_in(superuser_client, query) == names


def test_yesterday_is_the_day_before_today_in_utc(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for name, hours in (("a", 0), ("b", 0.001), ("c", 24), ("d", 24.001)):
        make_run(subject=name, created_at=midnight - timedelta(hours=hours))
    assert names_in(superuser_client, "?time=yesterday") == "bc"


def test_browser_actions_of_hosts_are_hidden_until_they_are_asked_for(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    make_run(subject="a")
    waiting = {"status": "running", "ready": False, "waiting_for": {"type": "confirmation"}}
    make_run(subject="h", template_id="session_action", **waiting)
    page = superuser_client.get(LIST).content.decode()
    assert "Browser actions of agent hosts are hidden" in page
    assert names_in(superuser_client, "") == "a"
    for query in ("?actions=shown", "?template=session_action", "?status=waiting"):
        assert "h" in names_in(superuser_client, query), query


def test_a_row_shows_subject_labels_token_and_waiting_time(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    make_run(
        subject="<b>登录</b>",
        labels={"env": "<prod>"},
        status="succeeded",
        active_ms=1500,
        started_at=NOW,
        ended_at=NOW + timedelta(seconds=61.5),
    )
    page = superuser_client.get(LIST).content.decode()
    assert "&lt;b&gt;登录&lt;/b&gt;" in page
    assert "env=&lt;prod&gt;" in page
    assert "waited 1 min 00 s" in page


def test_a_view_is_saved_chosen_and_deleted_by_its_owner_alone(
    superuser_client: Client, staff_client: Callable[..., Client]
) -> None:
    saved = {"name": " My  failures ", "query": "status=failed&q=登录"}
    assert superuser_client.post(f"{LIST}views/", saved).status_code == 302
    superuser_client.post(f"{LIST}views/", {**saved, "query": "status=failed"})
    view = SavedView.objects.get()
    assert (view.name, view.query) == ("My failures", "status=failed")
    page = superuser_client.get(LIST + "?status=failed")
    assert page.context["views"][0]["is_chosen"]
    other = staff_client("runs.view_run")
    assert "My failures" not in other.get(LIST).content.decode()
    other.post(f"{LIST}views/{view.id}/delete/")
    assert SavedView.objects.count() == 1
    superuser_client.post(f"{LIST}views/{view.id}/delete/")
    assert not SavedView.objects.exists()


@pytest.mark.parametrize("name", ["", " ", "x" * 65])
def test_a_view_without_a_proper_name_is_not_saved(superuser_client: Client, name: str) -> None:
    superuser_client.post(f"{LIST}views/", {"name": name, "query": "status=failed"})
    assert not SavedView.objects.exists()


def test_views_need_the_permission_to_view_runs(staff_client: Callable[..., Client]) -> None:
    nobody = staff_client()
    assert nobody.post(f"{LIST}views/", {"name": "x"}).status_code == 403
    assert nobody.post(f"{LIST}views/1/delete/").status_code == 403
    assert nobody.get(f"{LIST}export/").status_code == 403
    assert nobody.get(f"{LIST}failures/").status_code == 403
