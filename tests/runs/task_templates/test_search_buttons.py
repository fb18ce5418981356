"""How `search_extract` sends a search if no button is named, and that it sends it once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.browser.page_server import PageResponse
from tests.support.browser.template_sites import HEAD, RunTemplate, Site, by_selector, by_text
from tests.support.runs.worker_rows import error_of

CLOCK = "let n = 0; setInterval(() => { clock.textContent = `Now: ${'abcdef'[n++ % 6]}`; }, 1000);"
ASK = (
    "const ask = async () => { const words = q.value; found.textContent = 'Searching...';"
    " found.innerHTML = `<p>${(await (await fetch('/api?q=' + words)).json()).length} results"
    " for ${words}</p>`; };"
)


def search(run_template: RunTemplate, site: Site, markup: str, script: str, **more: Any) -> Any:
    """Search for “chair” on a page with a clock, this markup and this script."""
    page = (
        f"{HEAD}<title>Shop</title><nav><a href=/other>Search</a> <button>Search</button></nav>"
        f"<form action=/elsewhere><input name=mail><button>Search</button></form>{markup}"
        f"<div id=found></div><p id=clock></p><script>{CLOCK}{ASK}{script}</script>"
    )
    site.server.add("/shop", page)
    site.server.add("/api", PageResponse(b"[1, 2, 3]", mime="application/json"))
    return run_template(
        "search_extract",
        startUrl=site.url("/shop"),
        query="chair",
        searchField=by_selector("#q"),
        **more,
    )


FIELD = "<label>Search for <input id=q></label>"
BUTTONS = {
    "a button": ("<button id=go>Search</button>", "Search"),
    "an icon": ("<button id=go aria-label=Find><svg></svg></button>", "Find"),
    "a role": ("<span id=go role=button tabindex=0>查询</span>", "查询"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "button",
    ["a button", *(pytest.param(name, marks=pytest.mark.slow) for name in ("an icon", "a role"))],
)
def test_the_button_beside_the_field_is_clicked_if_enter_starts_nothing(
    run_template: RunTemplate, site: Site, button: str
) -> None:
    markup, label = BUTTONS[button]
    run = search(run_template, site, FIELD + markup, "go.onclick = ask;")
    assert run.status == "succeeded", run.error
    assert "3 results for chair" in str(run.result["content"])
    assert f"with the button “{label}”, because Enter started nothing" in run.result_summary
    assert (site.server.hits["/api"], site.server.hits["/elsewhere"]) == (1, 0)


def assert_sent_once(run_template: RunTemplate, site: Site, on_enter: str) -> None:
    script = (
        f"q.onkeydown = (event) => {{ if (event.key === 'Enter') {on_enter}; }};"
        " go.onclick = () => { document.title = 'Clicked'; };"
    )
    run = search(run_template, site, f"{FIELD}<button id=go>Search</button>", script)
    assert run.status == "succeeded", run.error
    assert "with the Enter key" in run.result_summary
    assert run.result["finalPage"]["title"] == "Shop"
    assert site.server.hits["/api"] <= 1


def test_a_search_that_enter_began_is_not_sent_again(run_template: RunTemplate, site: Site) -> None:
    assert_sent_once(run_template, site, "ask()")


@pytest.mark.slow
@pytest.mark.parametrize("on_enter", ["setTimeout(ask, 1000)", "found.innerHTML = '<p>chair</p>'"])
def test_a_search_that_begins_late_or_without_a_request_is_not_sent_again(
    run_template: RunTemplate, site: Site, on_enter: str
) -> None:
    assert_sent_once(run_template, site, on_enter)


NAV_ONLY = f"""{HEAD}<title>Start</title><nav><a href=/other>Search</a></nav><input id=q>
<p id=clock></p><script>{CLOCK}</script>"""


@pytest.mark.slow
def test_a_named_button_is_taken_before_a_link_of_the_menu_with_the_same_words(
    run_template: RunTemplate, site: Site
) -> None:
    markup = f"{FIELD}<button id=go>Search</button>"
    run = search(run_template, site, markup, "go.onclick = ask;", submit=by_text("search"))
    assert run.status == "succeeded", run.error
    assert "3 results for chair" in str(run.result["content"])
    assert (site.server.hits["/api"], site.server.hits["/other"]) == (1, 0)


def test_a_link_that_was_followed_is_no_search(run_template: RunTemplate, site: Site) -> None:
    site.server.add("/other", f"{HEAD}<title>Other</title><h1>Search our shop</h1>")
    site.server.add("/start", NAV_ONLY)
    run = run_template(
        "search_extract",
        startUrl=site.url("/start"),
        query="chair",
        searchField=by_selector("#q"),
        submit=by_text("search"),
    )
    error = error_of(run)
    assert (error["errorCode"], error["retryable"]) == ("STEP_EXECUTION_FAILED", False)
    assert error["details"]["reason"] == "link_followed"
