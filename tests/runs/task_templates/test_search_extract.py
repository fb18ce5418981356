"""The template `search_extract` on a search page that a script renders."""

from __future__ import annotations

from typing import Any

import pytest

from runs.models import RunEvent, RunStep
from tests.support.browser.template_sites import RunTemplate, Site, by_selector, by_text
from tests.support.runs.worker_rows import error_of

RESULTS = {"type": "selector", "value": "li.result", "timeoutMs": 8000}


def search_inputs(site: Site, **more: Any) -> dict[str, Any]:
    return {
        "startUrl": site.url("/search"),
        "query": "queues 队列",
        "searchField": by_text("search articles"),
        "waitForResults": RESULTS,
        **more,
    }


def test_the_results_are_waited_for_and_read(run_template: RunTemplate, site: Site) -> None:
    run = run_template("search_extract", **search_inputs(site))
    assert run.status == "succeeded", run.error
    assert (run.result["success"], run.result["resultOpened"]) == (True, False)
    assert run.result["query"] == "queues 队列"
    assert "All about queues 队列" in str(run.result["content"])
    assert RunStep.objects.filter(run=run, status="succeeded").count() == 5


def test_a_result_is_opened_in_the_same_tab_and_read(run_template: RunTemplate, site: Site) -> None:
    run = run_template("search_extract", **search_inputs(site, openResult=by_text("for beginners")))
    assert run.status == "succeeded", run.error
    assert run.result["resultOpened"] is True
    assert run.result["finalPage"]["url"] == site.url("/article?n=2")
    assert "Read me to the end" in str(run.result["content"])


@pytest.mark.slow
def test_an_approximate_match_is_reported_with_its_score(
    run_template: RunTemplate, site: Site
) -> None:
    run = run_template(
        "search_extract", **search_inputs(site, openResult=by_selector("li.result a"))
    )
    events = RunEvent.objects.filter(run=run, type="step.succeeded").order_by("seq")
    matches = {event.data["name"]: event.data.get("match") for event in events}
    assert matches["enter the query"]["label"] == "Search articles"
    assert 0.5 <= matches["enter the query"]["score"] <= 1
    opened = matches["open a result and read it"]
    assert opened["equals"] > 1
    warning = (
        f"{opened['equals']} elements fit as well as “{opened['label']}”; the first was taken."
    )
    assert warning in run.warnings


@pytest.mark.slow
def test_the_button_may_be_named(run_template: RunTemplate, site: Site) -> None:
    run = run_template(
        "search_extract",
        **search_inputs(
            site, submit=by_text("搜索"), extract={"pageInfo": False, "maxContentLength": 50}
        ),
    )
    assert run.status == "succeeded", run.error
    assert run.result["pageInfo"] is None


@pytest.mark.slow
def test_a_missing_field_fails_with_the_existing_ones(
    run_template: RunTemplate, site: Site
) -> None:
    run = run_template("search_extract", **search_inputs(site, searchField=by_text("postal code")))
    error = error_of(run)
    assert (run.status, error["errorCode"]) == ("failed", "ELEMENT_NOT_FOUND")
    assert error["step"]["name"] == "enter the query"
    assert error["details"]["candidates"][0]["label"] == "Search articles"
    assert error["retryable"] is True
    (action,) = run.next_actions
    assert (action["tool"], action["args"]["templateId"]) == (
        "run_task_template",
        "batch_extract_pages",
    )


@pytest.mark.slow
def test_a_missing_result_fails_with_the_existing_results(
    run_template: RunTemplate, site: Site
) -> None:
    run = run_template(
        "search_extract", **search_inputs(site, openResult=by_selector("li.result a.missing"))
    )
    error = error_of(run)
    assert error["errorCode"] == "ELEMENT_NOT_FOUND"
    assert error["step"]["name"] == "open a result and read it"


@pytest.mark.slow
def test_results_that_do_not_appear_are_a_timeout(run_template: RunTemplate, site: Site) -> None:
    never = {"type": "selector", "value": ".never", "timeoutMs": 300}
    run = run_template("search_extract", **search_inputs(site, waitForResults=never))
    error = error_of(run)
    assert (error["errorCode"], error["step"]["name"]) == (
        "NAVIGATION_TIMEOUT",
        "wait for the results",
    )
    assert run.next_actions[0]["args"]["inputs"]["query"] == "queues 队列"


@pytest.mark.slow
def test_a_wait_that_the_end_of_the_run_cuts_short_is_a_timeout_of_the_run(
    run_template: RunTemplate, site: Site
) -> None:
    never = {"type": "selector", "value": ".never", "timeoutMs": 60_000}
    run = run_template(
        "search_extract", **search_inputs(site, waitForResults=never), timeout_ms=6000
    )
    error = error_of(run)
    assert (run.status, error["errorCode"]) == ("failed", "RUN_TIMEOUT"), error
    assert "6000 ms" in error["message"]
    assert run.next_actions[0]["args"]["options"]["timeoutMs"] > 6000


def test_an_address_outside_the_web_is_rejected(run_template: RunTemplate, site: Site) -> None:
    run = run_template("search_extract", **search_inputs(site, startUrl="file:///etc/passwd"))
    assert error_of(run)["errorCode"] == "INVALID_PARAMETER"
