"""The template `paginated_extract` on lists of links and on one that a script fills."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runners.browser.tools import read_current_page
from runs.models import Run, RunStep
from runs.task_templates.builtin.paginated_extract import _more_pages_named
from tests.support.browser.page_server import PageResponse
from tests.support.browser.template_sites import (
    HEAD,
    RunTemplate,
    Site,
    by_selector,
    by_text,
    listing,
)
from tests.support.runs.worker_rows import error_of


def result_of(run: Run) -> dict[str, Any]:
    assert run.result is not None, run.error
    result: dict[str, Any] = run.result
    return result


def statuses(run: Run) -> list[str]:
    return list(RunStep.objects.filter(run=run).order_by("index").values_list("status", flat=True))


def paging(next_: dict[str, str], max_pages: int, **more: Any) -> dict[str, Any]:
    return {"next": next_, "maxPages": max_pages, **more}


@pytest.mark.slow
def test_it_stops_where_there_is_no_next_page_and_skips_the_rest(
    run_template: RunTemplate, site: Site
) -> None:
    run = run_template(
        "paginated_extract", startUrl=site.url("/list"), pagination=paging(by_text("next page"), 9)
    )
    result = result_of(run)
    assert run.status == "succeeded"
    assert (result["stoppedReason"], result["summary"]["pagesRead"]) == ("next_unavailable", 4)
    assert [page["title"] for page in result["pages"]] == ["List 1", "List 2", "List 3", "List 4"]
    assert "Item 3-0" in str(result["pages"][2]["content"])
    assert statuses(run) == ["succeeded"] * 4 + ["skipped"] * 5
    assert (run.done_steps, run.total_steps) == (4, 4)


def test_it_stops_at_the_requested_maximum_of_pages(run_template: RunTemplate, site: Site) -> None:
    run = run_template(
        "paginated_extract", startUrl=site.url("/list"), pagination=paging(by_selector("#next"), 2)
    )
    result = result_of(run)
    assert (result["stoppedReason"], len(result["pages"])) == ("max_pages", 2)
    assert site.server.hits["/list"] == 2


@pytest.mark.slow
def test_a_page_that_repeats_ends_it_and_is_returned_once(
    run_template: RunTemplate, site: Site
) -> None:
    run = run_template(
        "paginated_extract", startUrl=site.url("/circle"), pagination=paging(by_text("next"), 20)
    )
    result = result_of(run)
    assert (result["stoppedReason"], len(result["pages"])) == ("repeated_page", 3)
    assert run.status == "succeeded"


@pytest.mark.slow
def test_a_list_that_a_script_fills_is_read_page_by_page(
    run_template: RunTemplate, site: Site
) -> None:
    run = run_template(
        "paginated_extract",
        startUrl=site.url("/feed"),
        pagination=paging(by_text("下一页"), 10, waitFor={"type": "textIncludes", "value": "文章"}),
    )
    result = result_of(run)
    texts = [str(page["content"]["sections"]) for page in result["pages"]]
    assert ["第1页" in texts[0], "第2页" in texts[1], "第3页" in texts[2]] == [True] * 3
    assert (result["stoppedReason"], len(texts)) == ("next_unavailable", 3)


@pytest.mark.slow
def test_pages_that_were_read_remain_when_a_later_one_fails(
    run_template: RunTemplate, site: Site
) -> None:
    wait = {"type": "selector", "value": "#next", "timeoutMs": 1000}
    run = run_template(
        "paginated_extract",
        startUrl=site.url("/list"),
        pagination=paging(by_text("next page"), 6, waitFor=wait),
    )
    result = result_of(run)
    assert (run.status, run.error) == ("partial_success", None)
    assert [page["success"] for page in result["pages"]] == [True, True, True, False]
    assert result["pages"][3]["error"]["errorCode"] == "NAVIGATION_TIMEOUT"
    assert result["stoppedReason"] is None
    assert result["summary"] == {"pagesRead": 3, "failed": 1, "maxPages": 6}


def test_a_first_page_that_fails_fails_the_run(run_template: RunTemplate, site: Site) -> None:
    run = run_template(
        "paginated_extract", startUrl=site.url("/hang-up"), pagination=paging(by_text("next"), 3)
    )
    error = error_of(run)
    assert (run.status, error["errorCode"]) == ("failed", "STEP_EXECUTION_FAILED")
    assert error["step"] == {"step": 0, "name": "read page 1"}


def test_a_text_that_finds_nothing_on_the_first_page_causes_a_warning(
    run_template: RunTemplate, site: Site
) -> None:
    run = run_template(
        "paginated_extract", startUrl=site.url("/list"), pagination=paging(by_text("forward"), 3)
    )
    assert result_of(run)["stoppedReason"] == "next_unavailable"
    assert any("No element on page 1" in warning for warning in run.warnings)


def test_an_invalid_selector_is_reported(run_template: RunTemplate, site: Site) -> None:
    run = run_template(
        "paginated_extract", startUrl=site.url("/list"), pagination=paging(by_selector("a[[["), 3)
    )
    assert error_of(run)["errorCode"] == "INVALID_PARAMETER"
    assert run.next_actions[0]["tool"] == "list_task_templates"


SLOW_LIST = f"""{HEAD}<title>Feed</title><h1>Feed</h1><ul id=list><li>Item 1</ul>
<nav class=pagination><span id=at>Page 1 of 3</span> <button id=more>Next</button></nav><script>
more.onclick = () => fetch("/api/late").then(() => {{
  list.innerHTML = "<li>Item 2"; at.textContent = "Page 2 of 3"; more.remove();
}});
</script>"""


@pytest.mark.slow
def test_a_page_that_comes_late_is_waited_for(
    run_template: RunTemplate, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_current_page, "CHANGE_SECONDS", 0.2)
    site.server.add("/late-list", SLOW_LIST)
    site.server.add("/api/late", PageResponse(b"{}", mime="application/json", delay=1.0))
    run = run_template(
        "paginated_extract",
        startUrl=site.url("/late-list"),
        pagination=paging(by_selector("#more"), 5),
    )
    result = result_of(run)
    assert ["Item 2" in str(page["content"]) for page in result["pages"]] == [False, True]
    assert result["stoppedReason"] == "next_unavailable"
    assert "Page 2 of 3" in run.warnings[-1]  # the pager is part of the text


def test_a_next_button_that_changes_nothing_causes_a_warning(
    run_template: RunTemplate, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_current_page, "CHANGE_SECONDS", 0.2)
    site.server.add("/stuck", f"{HEAD}<title>Stuck</title><p>Item<p><button>Next</button>")
    run = run_template(
        "paginated_extract",
        startUrl=site.url("/stuck"),
        pagination=paging(by_selector("button"), 5),
    )
    assert result_of(run)["stoppedReason"] == "repeated_page"
    assert "may have more pages" in run.warnings[-1]


def test_a_number_of_a_thousand_digits_on_a_page_is_no_number_of_pages() -> None:
    text = f"Page 1 of {'9' * 5000}, Page 1 of 3"
    (warning,) = _more_pages_named({"content": {"sections": [{"text": text}]}})
    assert "Page 1 of 3" in warning


CLOCKS = {
    "digits": "<p id=clock><script>setInterval(() => {"
    " clock.textContent = new Date().toISOString(); }, 60)</script>",
    "words": "<p id=clock><script>let n = 0; setInterval(() => {"
    " clock.textContent = `Now: ${'abcdef'[n++ % 6]}`; }, 250)</script>",
}


def pages_of_timed_list(run_template: RunTemplate, site: Site, clock: str) -> list[Any]:
    """Read a list with a clock whose next page a timer shows, without a request."""
    timed = SLOW_LIST.replace('fetch("/api/late").then(() => {', "setTimeout(() => {")
    timed = timed.replace("more.remove();\n});", "more.remove();\n}, 900);")
    site.server.add("/timed", timed + CLOCKS[clock])
    pagination = paging(by_selector("#more"), 5)
    run = run_template("paginated_extract", startUrl=site.url("/timed"), pagination=pagination)
    return list(result_of(run)["pages"])


def test_a_clock_is_no_next_page(
    run_template: RunTemplate, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_current_page, "CHANGE_SECONDS", 1.5)
    pages = pages_of_timed_list(run_template, site, "words")
    assert ["Item 2" in str(page["content"]) for page in pages] == [False, True]


@pytest.mark.slow
def test_the_time_of_day_is_no_next_page(run_template: RunTemplate, site: Site) -> None:
    pages = pages_of_timed_list(run_template, site, "digits")
    assert ["Item 2" in str(page["content"]) for page in pages] == [False, True]


@pytest.mark.slow
def test_a_clock_does_not_hide_that_nothing_changed(
    run_template: RunTemplate, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_current_page, "CHANGE_SECONDS", 0.2)
    stuck = f"{HEAD}<title>Stuck</title><p>Item<p><button>Next</button>{CLOCKS['words']}"
    site.server.add("/stuck", stuck)
    run = run_template(
        "paginated_extract",
        startUrl=site.url("/stuck"),
        pagination=paging(by_selector("button"), 5),
    )
    assert result_of(run)["stoppedReason"] == "repeated_page"
    assert len(result_of(run)["pages"]) == 1


@pytest.mark.slow
def test_a_page_that_repeats_with_another_time_ends_the_list(
    run_template: RunTemplate, site: Site
) -> None:
    pages = listing(2, repeats=True)
    assert callable(pages)

    def with_clock(query: str) -> PageResponse:
        page = pages(query)
        return replace(page, body=page.body + CLOCKS["digits"].encode())

    site.server.add("/circle", with_clock)
    run = run_template(
        "paginated_extract", startUrl=site.url("/circle"), pagination=paging(by_text("next"), 8)
    )
    result = result_of(run)
    assert (result["stoppedReason"], len(result["pages"])) == ("repeated_page", 2)
