"""The template `search_extract` reports no search that did not happen, and reads no half result."""

from __future__ import annotations

from typing import Any

import pytest

from runners.browser.reading import page_watch
from runners.browser.session.submit_watch import _has, _values_in, _values_of
from tests.support.browser.page_server import PageResponse
from tests.support.browser.template_sites import HEAD, RunTemplate, Site, by_selector
from tests.support.runs.worker_rows import error_of

FIELD = f"""{HEAD}<title>Find</title><h1>Library</h1><input id=q placeholder=Search>
<p>Now <span id=clock>0</span>, <span id=visits>1</span> visitors<ul id=found></ul><script>
setInterval(() => {{ clock.textContent = new Date().toISOString(); visits.textContent++; }}, 60);
const show = (words) => {{ found.innerHTML = `<li>All about ${{words}}<li>${{words}} II`; }};
const onEnter = (act) => q.addEventListener("keydown", (e) => e.key === "Enter" && act(q.value));
"""
EARLIER = {"type": "selector", "value": "#found", "timeoutMs": 2000}  # true before the search


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_watch, "NOTHING_SECONDS", 0.8)


def search(
    run_template: RunTemplate, site: Site, script: str, *, page: str = FIELD, **more: Any
) -> Any:
    """Run a search on a page with a field and this script."""
    site.server.add("/find", f"{page}{script}</script>")
    site.server.add("/api", PageResponse(b"{}", mime="application/json", delay=0.7))
    site.server.add("/api/error", PageResponse(b"{}", mime="application/json", status=500))
    return run_template(
        "search_extract",
        startUrl=site.url("/find"),
        query="durable queues",
        searchField=by_selector("#q"),
        **more,
    )


@pytest.mark.parametrize("more", [{}, {"waitForResults": EARLIER}], ids=["alone", "old condition"])
def test_a_field_that_does_nothing_is_a_failed_search(
    run_template: RunTemplate, site: Site, more: dict[str, Any]
) -> None:
    error = error_of(search(run_template, site, "", **more))
    assert (error["errorCode"], error["step"]["name"]) == (
        "STEP_EXECUTION_FAILED",
        "wait for the results",
    )
    assert error["details"]["reason"] == "nothing_happened"
    assert "submit" in error["recovery"]


WORD = "'abcdef'[n++ % 6]"
CLOCKS = {
    "words": f"clock.textContent = `Now: ${{{WORD}}}`; }}, 1000);",
    "digits in an empty element": "clock.textContent = new Date().toISOString(); }, 700);",
    "marked up words": f"clock.innerHTML = `<b>Now</b> <i>${{{WORD}}}</i>`; }}, 300);",
}


def search_with_clock(
    run_template: RunTemplate, site: Site, monkeypatch: pytest.MonkeyPatch, clock: str
) -> Any:
    monkeypatch.setattr(page_watch, "NOTHING_SECONDS", 2.5)
    page = f"{HEAD}<title>Find</title><input id=q name=q><p id=clock></p><script>"
    script = f"let n = 0; setInterval(() => {{ {CLOCKS[clock]}"
    return search(run_template, site, script, page=page)


def test_a_clock_is_no_evidence_of_a_search(
    run_template: RunTemplate, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = error_of(search_with_clock(run_template, site, monkeypatch, "words"))
    assert error["details"]["reason"] == "nothing_happened"


@pytest.mark.slow
@pytest.mark.parametrize("clock", [*CLOCKS][1:])
def test_no_kind_of_clock_is_evidence_of_a_search(
    run_template: RunTemplate, site: Site, monkeypatch: pytest.MonkeyPatch, clock: str
) -> None:
    error = error_of(search_with_clock(run_template, site, monkeypatch, clock))
    assert error["details"]["reason"] == "nothing_happened"


@pytest.mark.slow
def test_a_search_whose_request_fails_is_a_failed_search(
    run_template: RunTemplate, site: Site
) -> None:
    script = "onEnter((words) => { show('nothing'); fetch('/api/error?q=' + words); });"
    error = error_of(search(run_template, site, script))
    assert error["details"] | {"reason": "request_failed", "httpStatus": 500} == error["details"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "come",
    [
        "fetch('/api?q=' + words).then(() => show(words));",
        pytest.param(
            "fetch('/api', {method: 'POST', body: `q=${words}`}).then(() => show(words));",
            marks=pytest.mark.slow,
        ),
        pytest.param("setTimeout(() => show(words), 900);", marks=pytest.mark.slow),
    ],
    ids=["request", "body of a request", "timer"],
)
def test_results_that_come_late_are_read_when_they_are_there(
    run_template: RunTemplate, site: Site, come: str
) -> None:
    script = f"onEnter((words) => {{ found.textContent = 'Searching...'; {come} }});"
    run = search(run_template, site, script)
    assert run.status == "succeeded", run.error
    assert "All about durable queues" in str(run.result["content"])


def test_a_search_within_the_page_succeeds_by_what_changed(
    run_template: RunTemplate, site: Site
) -> None:
    run = search(run_template, site, "onEnter(show);")
    assert run.status == "succeeded", run.error
    assert "All about durable queues" in str(run.result["content"])


def test_a_page_that_searches_while_one_types_needs_a_condition(
    run_template: RunTemplate, site: Site
) -> None:
    script = "q.addEventListener('input', () => q.value.length > 13 && show(q.value));"
    shown = {"type": "selector", "value": "#found li", "timeoutMs": 2000}
    run = search(run_template, site, script, waitForResults=shown)
    assert run.status == "succeeded", run.error
    assert "durable queues II" in str(run.result["content"])


@pytest.mark.parametrize(
    ("url", "query", "has"),
    [
        ("https://x.example/s?q=durable+queues", "Durable Queues", True),
        ("https://x.example/s/durable-queues/1", "durable queues", True),
        ("https://x.example/#q=durable%20queues&p=2", "durable queues", True),
        ("https://x.example/s?wd=%B6%D3%C1%D0", "队列", True),
        ("https://x.example/s?q=C%2B%2B", "C++", True),
        ("https://x.example/googling?x=1", "go", False),
        ("https://x.example/s?q=queues", "durable queues", False),
    ],
)
def test_a_query_is_found_in_an_address_by_its_words(url: str, query: str, *, has: bool) -> None:
    assert any(_has(text, query) for text in _values_of(url)) is has


def test_a_body_that_is_nested_too_deeply_is_read_as_text() -> None:
    assert _values_in("[" * 100_000) == ["[" * 100_000]


def test_a_query_is_found_in_json_and_forms() -> None:
    for body in ('{"a": [{"text": "durable \\u961f"}]}', "x=1&text=durable+%E9%98%9F"):
        assert any(_has(text, "durable 队") for text in _values_in(body))
