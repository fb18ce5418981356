"""The page with plots, and the values behind them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from runs.models import Run
from runs.statistics.folding import fold_statistics

PAGE, DATA = "/admin/statistics/", "/admin/statistics/data/"


@pytest.mark.parametrize("path", [PAGE, DATA])
def test_the_statistics_need_the_permission_to_view_runs(
    staff_client: Callable[..., Client], path: str
) -> None:
    assert staff_client("runs.view_run").get(path).status_code == 200
    assert staff_client("runs.view_task").get(path).status_code == 403


def test_the_values_are_those_of_the_chosen_range_and_template(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    make_run(status="failed", template_id="a")
    make_run(status="succeeded", template_id="b")
    fold_statistics()
    data = superuser_client.get(f"{DATA}?range=7d&template=a").json()
    assert (data["range"], len(data["times"])) == ("7d", 84)
    assert sum(data["runs"]["failed"]) == 1
    assert sum(data["runs"]["succeeded"]) == 0
    page = superuser_client.get(f"{PAGE}?range=7d&template=a").content.decode()
    assert 'data-range="7d" data-workspace="" data-template="a"' in page


@pytest.mark.parametrize("query", ["range=1y", "range=", "workspace=%00", "template=" + "x" * 999])
def test_an_unknown_choice_shows_the_day_or_nothing(superuser_client: Client, query: str) -> None:
    data = superuser_client.get(f"{DATA}?{query}").json()
    assert data["range"] == "24h"
    assert superuser_client.get(f"{PAGE}?{query}").status_code == 200


def test_the_runs_behind_a_point_are_listed(
    superuser_client: Client, make_run: Callable[..., Run]
) -> None:
    now = datetime.now(UTC)
    inside = make_run(status="failed", created_at=now - timedelta(hours=2))
    make_run(status="failed", created_at=now - timedelta(hours=4))
    make_run(status="succeeded", created_at=now - timedelta(hours=2))
    since = (now - timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    before = (now - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    query = f"created_at__gte={since}&created_at__lt={before}&status=failed"
    page = superuser_client.get(f"/admin/runs/run/?{query}")
    assert page.status_code == 200
    assert [run.id for run in page.context["cl"].result_list] == [inside.id]
