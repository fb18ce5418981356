"""The template `multi_tab_compare`: snapshots, and the differences between pages."""

from __future__ import annotations

from typing import Any

import pytest

from runners.tools.base import Effect
from runs.models import Run, RunEvent, RunStep
from runs.task_templates.base import StepView
from runs.task_templates.builtin.multi_tab_compare import Compare, differences
from tests.support.browser.template_sites import HEAD, RunTemplate, Site
from tests.support.runs.worker_rows import error_of


def page(title: str, *headings: str, links: int = 1) -> str:
    sections = "".join(f"<h2>{heading}</h2><p>Text of it.</p>" for heading in headings)
    return f"{HEAD}<title>{title}</title><main>{sections}{'<a href=/x>x</a> ' * links}</main>"


@pytest.fixture
def site_with_pages(site: Site) -> Site:
    for path, markup in {
        "/a": page("One", "Intro", "Price", "Terms"),
        "/b": page("One", "Intro", "Costs", "Terms", links=4),
        "/same": page("One", "Intro", "Price", "Terms"),
    }.items():
        site.server.add(path, markup)
    return site


def urls(site: Site, *paths: str) -> list[str]:
    return [site.url(path) for path in paths]


def result_of(run: Run) -> dict[str, Any]:
    assert run.result is not None, run.error
    result: dict[str, Any] = run.result
    return result


def test_it_reports_the_fields_that_differ(
    run_template: RunTemplate, site_with_pages: Site
) -> None:
    a, b = urls(site_with_pages, "/a", "/b")
    run = run_template("multi_tab_compare", urls=[a, b])
    result = result_of(run)
    assert run.status == "succeeded"
    assert result["diffs"] == [
        {"field": "elementCount", "same": False, "values": {a: 1, b: 4}, "delta": 3},
        {
            "field": "topSections",
            "same": False,
            "values": {a: ["Intro", "Price", "Terms"], b: ["Intro", "Costs", "Terms"]},
            "changedPositions": [1],
        },
    ]
    assert [snapshot["title"] for snapshot in result["snapshots"]] == ["One", "One"]
    assert RunStep.objects.filter(run=run).count() == 3


def test_equal_pages_have_no_differences(run_template: RunTemplate, site_with_pages: Site) -> None:
    run = run_template("multi_tab_compare", urls=urls(site_with_pages, "/a", "/same"))
    assert result_of(run)["diffs"] == []
    assert "no difference" in run.result_summary


def test_only_the_requested_fields_are_compared(
    run_template: RunTemplate, site_with_pages: Site
) -> None:
    compare = {"fields": ["title", "elementCount"], "numericTolerance": 3}
    run = run_template("multi_tab_compare", urls=urls(site_with_pages, "/a", "/b"), compare=compare)
    result = result_of(run)
    assert result["diffs"] == []
    assert result["summary"]["comparedFields"] == ["title", "elementCount"]


def test_a_page_that_fails_is_reported_and_the_others_are_compared(
    run_template: RunTemplate, site_with_pages: Site
) -> None:
    run = run_template("multi_tab_compare", urls=urls(site_with_pages, "/a", "/hang-up", "/b"))
    result = result_of(run)
    assert (run.status, result["summary"]["failed"]) == ("partial_success", 1)
    assert [snapshot["success"] for snapshot in result["snapshots"]] == [True, False, True]
    assert result["snapshots"][1]["error"]["errorCode"] == "STEP_EXECUTION_FAILED"
    assert {diff["field"] for diff in result["diffs"]} == {"elementCount", "topSections"}


def test_a_single_page_is_not_compared_and_a_warning_is_returned(
    run_template: RunTemplate, site_with_pages: Site
) -> None:
    run = run_template("multi_tab_compare", urls=[site_with_pages.url("/a"), "ftp://example.org/"])
    result = result_of(run)
    assert (run.status, result["diffs"]) == ("partial_success", [])
    assert "nothing to compare" in run.warnings[0]
    assert result["snapshots"][1]["error"]["errorCode"] == "INVALID_PARAMETER"


def test_without_any_page_it_fails_with_their_common_code(
    run_template: RunTemplate, site_with_pages: Site
) -> None:
    run = run_template("multi_tab_compare", urls=["ftp://example.org/", "file:///etc/hosts"])
    error = error_of(run)
    assert (run.status, error["errorCode"]) == ("failed", "INVALID_PARAMETER")
    assert len(error["details"]["items"]) == 2


def test_the_comparison_starts_when_every_page_was_read(
    run_template: RunTemplate, site_with_pages: Site
) -> None:
    run = run_template(
        "multi_tab_compare", urls=urls(site_with_pages, "/a", "/slow"), concurrency=5
    )
    events = RunEvent.objects.filter(run=run).order_by("seq").values_list("type", "data")
    step_events = [(kind, data.get("step")) for kind, data in events if kind.startswith("step.")]
    assert step_events[-2:] == [("step.started", 2), ("step.succeeded", 2)]


def test_the_requested_extracts_are_in_the_snapshots(
    run_template: RunTemplate, site_with_pages: Site
) -> None:
    extract = {"pageInfo": True, "content": False}
    run = run_template("multi_tab_compare", urls=urls(site_with_pages, "/a", "/b"), extract=extract)
    first = result_of(run)["snapshots"][0]
    assert first["content"] is None
    assert first["pageInfo"]["totalElements"] == 1
    assert first["topSections"] == ["Intro", "Price", "Terms"]


def view(url: str, **output: Any) -> StepView:
    full_output = {"title": "t", "elementCount": 0, "topSections": [], **output}
    return StepView(0, "read", {"url": url}, True, full_output, None, Effect.READ)


def test_lists_of_different_length_differ_where_one_ends() -> None:
    pages = [view("a", topSections=["x", "y"]), view("b", topSections=["x"])]
    (diff,) = differences(pages, Compare())
    assert diff["changedPositions"] == [1]


@pytest.mark.parametrize(("tolerance", "differs"), [(4, True), (4.9, True), (5, False)])
def test_a_difference_within_the_tolerance_is_none(tolerance: float, *, differs: bool) -> None:
    pages = [view("a", elementCount=10), view("b", elementCount=15)]
    rules = Compare.model_validate({"numericTolerance": tolerance})
    assert bool(differences(pages, rules)) is differs
