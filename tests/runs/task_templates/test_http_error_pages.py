"""Pages with an HTTP error status: failures that keep the page's text, or pages like any other."""

from __future__ import annotations

from typing import Any

import pytest

from decisions.identity.principals import Principal
from runs.models import Run
from runs.queries.page_reader import read_page_content
from tests.support.browser.template_sites import HEAD, RunTemplate, Site, by_selector
from tests.support.runs.worker_rows import error_of


def items_of(run: Run) -> list[dict[str, Any]]:
    assert run.result is not None, run.error
    items: list[dict[str, Any]] = run.result["items"]
    return items


def test_a_page_that_the_server_does_not_have_is_a_failed_item(
    run_template: RunTemplate, site: Site, principal: Principal
) -> None:
    urls = [site.url(path) for path in ("/article", "/missing", "/broken", "/empty-404")]
    run = run_template("batch_extract_pages", urls=urls)
    items = items_of(run)
    assert run.status == "partial_success"
    assert [item["success"] for item in items] == [True, False, False, False]
    assert [item["httpStatus"] for item in items] == [200, 404, 500, 404]
    assert run.result_summary == "1 of 4 pages read, 3 failed"
    error = items[1]["error"]
    assert (error["errorCode"], error["details"]["httpStatus"]) == ("STEP_EXECUTION_FAILED", 404)
    call = {"artifactId": error["details"]["artifactId"], "grep": "nothing here"}
    assert read_page_content(principal=principal, call=call)["matches"]
    assert site.server.hits["/broken"] == 1  # an answer, not a lost page: no second request


def test_error_pages_are_kept_where_the_caller_wants_them(
    run_template: RunTemplate, site: Site
) -> None:
    urls = [site.url("/article"), site.url("/missing")]
    run = run_template("batch_extract_pages", urls=urls, onHttpError="keep")
    items = items_of(run)
    assert run.status == "succeeded"
    assert [item["httpStatus"] for item in items] == [200, 404]
    assert "There is nothing here." in str(items[1]["content"])
    assert run.result_summary == "2 of 2 pages read, 1 of them with an HTTP error status"


def test_a_run_that_got_error_pages_only_fails_with_the_status(
    run_template: RunTemplate, site: Site
) -> None:
    error = error_of(run_template("batch_extract_pages", urls=[site.url("/missing")]))
    assert (error["errorCode"], error["details"]["httpStatus"]) == ("STEP_EXECUTION_FAILED", 404)
    assert "onHttpError" in error["recovery"]


def test_an_error_page_is_not_compared(run_template: RunTemplate, site: Site) -> None:
    urls = [site.url(path) for path in ("/article", "/missing")]
    run = run_template("multi_tab_compare", urls=urls)
    assert run.result is not None
    assert (run.status, run.result["diffs"]) == ("partial_success", [])
    assert [snapshot["httpStatus"] for snapshot in run.result["snapshots"]] == [200, 404]


def test_a_list_that_ends_in_an_error_page_is_not_complete(
    run_template: RunTemplate, site: Site
) -> None:
    site.server.add("/goods", f"{HEAD}<title>Goods</title><p>One<p><a href=/broken>Next</a>")
    pagination = {"next": by_selector("a"), "maxPages": 5}
    run = run_template("paginated_extract", startUrl=site.url("/goods"), pagination=pagination)
    assert run.result is not None, run.error
    assert (run.status, run.result["stoppedReason"]) == ("partial_success", None)
    assert run.result["pages"][1]["httpStatus"] == 500


@pytest.mark.parametrize("kept", [False, True])
def test_a_result_that_is_an_error_page_was_not_read(
    run_template: RunTemplate, site: Site, kept: bool
) -> None:
    markup = f"{HEAD}<title>Find</title><form action=/missing><input name=q><button>Go</button>"
    site.server.add("/find", markup)
    run = run_template(
        "search_extract",
        startUrl=site.url("/find"),
        query="queues",
        searchField=by_selector("input"),
        **({"onHttpError": "keep"} if kept else {}),
    )
    if kept:
        assert run.result is not None, run.error
        assert run.result["finalPage"]["httpStatus"] == 404
    else:
        assert error_of(run)["details"]["httpStatus"] == 404
