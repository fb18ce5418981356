"""An operator finds yesterday's failures of one site in the admin, sees why one failed, and runs it
again with other inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from runs.models import Run
from tests.support.admin.visitor import Visitor

MakeRun = Callable[..., Run]
SITE = "docs.example.com"
URLS = [f"https://{SITE}/a", f"https://{SITE}/b"]


@pytest.fixture
def failure(make_run_with_steps: MakeRun, make_run: MakeRun) -> Run:
    """Create yesterday's failure of the site, and runs that differ from it in one thing each."""
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    yesterday = {"created_at": midnight - timedelta(hours=5)}
    of_site = {"subject": f"{SITE} · 2 pages", "template_id": "batch_extract_pages"}
    make_run(status="failed", subject="shop.example", **yesterday)
    make_run(status="succeeded", **of_site, **yesterday)
    make_run(status="failed", **of_site)
    make_run(status="failed", **of_site, created_at=midnight - timedelta(hours=25))
    columns = {"inputs": {"urls": URLS}, "labels": {"env": "prod"}, **of_site}
    run = make_run_with_steps(["succeeded", "failed"], status="failed", **columns)
    Run.objects.filter(id=run.id).update(**yesterday)
    return run


@pytest.mark.slow
def test_yesterdays_failures_of_a_site_are_filtered_and_run_again_with_other_inputs(
    visitor: Visitor, failure: Run
) -> None:
    visitor.open("/admin/runs/run/")
    visitor.fill("#searchbar", SITE)
    visitor.click(".rl-search button")
    visitor.do(visitor.page.select_option("select[name=status]", "failed"))
    visitor.do(visitor.page.wait_for_url("**status=failed**"))
    visitor.do(visitor.page.select_option("select[name=time]", "yesterday"))
    visitor.do(visitor.page.wait_for_url("**time=yesterday**"))
    rows = "#result_list tbody tr"
    assert [failure.id[-8:] in text for text in visitor.texts(rows)] == [True]
    visitor.click(f"{rows} a[href*='{failure.id}']")
    visitor.wait_for("text=NAVIGATION_TIMEOUT")
    visitor.click("text=Run again")
    visitor.fill("[name='inputs.urls']", URLS[1])
    visitor.fill("[name=labels]", "env=prod\nticket")
    visitor.click("text=Submit run")
    visitor.wait_for("#e-labels >> text=is not written name=value")
    visitor.fill("[name=labels]", "env=prod\nticket=OPS-17")
    visitor.click("text=Submit run")
    visitor.wait_for("text=Run again from")
    again = Run.objects.get(again_of=failure.id)
    assert (again.inputs, again.subject) == ({"urls": URLS[1:]}, f"{SITE}/b")
    assert again.labels == {"env": "prod", "ticket": "OPS-17"}
    visitor.click(f"a[href*='{failure.id}']")
    visitor.wait_for(f"text=Run again as >> xpath=.. >> a[href*='{again.id}']")
    visitor.click("text=Compare")
    visitor.wait_for(f"a[href*='{again.id}']")
    assert visitor.texts(".run-diff[data-inputs] tbody td:first-child") == ["urls"]
