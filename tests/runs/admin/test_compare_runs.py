"""Two runs side by side: what differs in their inputs, steps and results."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.models import Run

MakeRun = Callable[..., Run]
EVIL = '"><svg onload=alert(1)>'


def page_of(client: Client, first: Run, second: Run | None = None) -> str:
    """Return the text of the comparison."""
    address = f"/admin/runs/run/compare/?a={first.id}" + (f"&b={second.id}" if second else "")
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def test_what_differs_is_shown(superuser_client: Client, make_run_with_steps: MakeRun) -> None:
    inputs = {"urls": ["http://a/"], "extract": {"content": True}}
    first = make_run_with_steps(["succeeded", "succeeded"], status="succeeded", inputs=inputs)
    other = {"urls": ["http://a/"], "extract": {"content": False}, "concurrency": 2}
    second = make_run_with_steps(["succeeded", "failed", "pending"], status="failed", inputs=other)
    page = page_of(superuser_client, first, second)
    table = page.split("run-diff")[1].split("</table>")[0]
    assert ("extract.content" in table, "concurrency" in table, "urls" in table) == (
        True,
        True,
        False,
    )
    assert page.count("<tr data-differs>") == 2
    for text in ("NAVIGATION_TIMEOUT", "no such step", "not given", "made by a test"):
        assert text in page, text


def test_steps_of_the_same_name_stand_beside_each_other(
    superuser_client: Client, make_run_with_steps: MakeRun
) -> None:
    first = make_run_with_steps(["succeeded"] * 3, status="succeeded")
    second = make_run_with_steps(["succeeded"] * 3, status="succeeded")
    second.steps.filter(index=0).delete()
    page = page_of(superuser_client, first, second)
    assert page.count("<tr data-differs>") == 1
    assert page.count("no such step") == 1


def test_without_a_second_run_it_is_the_retry_or_the_newest_of_the_template(
    superuser_client: Client, make_run: MakeRun
) -> None:
    alone = make_run(template_id="search_extract")
    assert "There is no other run of this template" in page_of(superuser_client, alone)
    old = make_run(status="failed")
    retry = make_run(retry_of=old.id)
    make_run()
    assert f'value="{retry.id}" selected' in page_of(superuser_client, old)
    assert f'value="{old.id}" selected' in page_of(superuser_client, retry)


def test_values_are_escaped_and_secrets_masked(superuser_client: Client, make_run: MakeRun) -> None:
    first = make_run(inputs={"url": f"https://me:hunter2@host/{EVIL}"})
    second = make_run(
        inputs={"url": EVIL}, status="succeeded", result={"answer": EVIL, "usage": {}}
    )
    page = page_of(superuser_client, first, second)
    assert ("<svg" in page, "hunter2" in page) == (False, False)


def test_the_page_needs_the_permission_to_view_runs(
    staff_client: Callable[..., Client], make_run: MakeRun
) -> None:
    first, second = make_run(), make_run()
    page_of(staff_client("runs.view_run"), first, second)
    address = f"/admin/runs/run/compare/?a={first.id}&b={second.id}"
    assert staff_client("artifacts.view_artifact").get(address).status_code == 403


def test_an_unknown_run_is_not_found(superuser_client: Client, make_run: MakeRun) -> None:
    address = f"/admin/runs/run/compare/?a={make_run().id}"
    assert superuser_client.get(f"{address}&b=run_none").status_code == 404
    assert superuser_client.get("/admin/runs/run/compare/").status_code == 404


def test_long_runs_cost_as_many_queries(
    superuser_client: Client, make_run_with_steps: MakeRun
) -> None:
    few = [make_run_with_steps(["succeeded"], status="succeeded") for _ in range(2)]
    many = [make_run_with_steps(["succeeded"] * 250, status="succeeded") for _ in range(2)]
    with CaptureQueriesContext(connection) as for_few:
        page_of(superuser_client, *few)
    with CaptureQueriesContext(connection) as for_many:
        page = page_of(superuser_client, *many)
    assert len(for_many) == len(for_few) <= 20
    assert "Only the first 200 steps" in page
