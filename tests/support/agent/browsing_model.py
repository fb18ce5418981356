"""A scripted model that works on pages: opens a form, fills it, clicks its button and answers."""

from __future__ import annotations

from typing import Any

from tests.support.agent.agent_goals import observations, page_field, tool_results
from tests.support.agent.model_server import ModelRequest
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.page_server import PageServer
from tests.support.browser.template_sites import HEAD

SEARCH_TERM = "chair 你好"


def serve_shop(server: PageServer) -> str:
    """Serve a shop (start, search, results) and return the address of its start page."""
    server.add(
        "/results",
        f"{HEAD}<title>Results</title><main><h1>Results</h1><p>There are 7 chairs.</p></main>",
    )
    server.add(
        "/search",
        f"{HEAD}<title>Search</title><main><h1>Search</h1><form action=/results>"
        "<label>Word <input name=q></label><button>Find</button></form></main>",
    )
    return server.add(
        "/shop",
        f"{HEAD}<title>Shop</title><main><h1>Shop</h1><p>Welcome to the shop.</p>"
        "<a href=/search>To the search</a></main>",
    )


def serve_catalogue(server: PageServer) -> str:
    """Serve a catalogue (start, search, results, product) and return its start page's address."""
    server.add(
        "/chair",
        f"{HEAD}<title>Chair</title><main><h1>Chair</h1><p>There are 7 chairs.</p></main>",
    )
    server.add(
        "/found",
        f"{HEAD}<title>Found</title><main><h1>Found</h1><p>One kind of seat.</p>"
        "<a href=/chair>The chair</a></main>",
    )
    server.add(
        "/catalogue",
        f"{HEAD}<title>Catalogue</title><main><h1>Catalogue</h1><form action=/found>"
        "<label>Word <input name=q></label><button>Find</button></form></main>",
    )
    return server.add(
        "/start",
        f"{HEAD}<title>Start</title><main><h1>Start</h1><p>Welcome.</p>"
        "<a href=/catalogue>To the catalogue</a></main>",
    )


class BrowsingModel:
    """Choose the next turn from the tool results that the model received so far."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, request: ModelRequest) -> Turn:
        """Return the next turn: open the page, follow the link, type, click, or answer."""
        results, page = tool_results(request), str(observations(request))
        if not results:
            return Turn("I open the shop.", [Call("task_start", {"url": self.url}, "open")])
        tab = _tab(results)
        last = results[-1]
        if last["name"] in ("task_start", "browser_click") and "chairs" not in page:
            return Turn("", [Call("browser_dom_index", {"tabId": tab}, f"index{len(results)}")])
        if last["name"] == "browser_dom_index":
            return Turn("", _next_calls(last, tab, len(results)))
        assert "There are 7 chairs" in page, page
        return complete("There are 7 chairs.", output={"count": 7})


def _next_calls(index: dict[str, Any], tab: int, number: int) -> list[Call]:
    elements = page_field(index, "elements")
    ids = {element["tag"].lower(): element["clickId"] for element in elements}
    if "input" not in ids:
        return [Call("browser_click", {"tabId": tab, "clickId": ids["a"]}, f"follow{number}")]
    return [
        Call("browser_type", {"tabId": tab, "clickId": ids["input"], "text": SEARCH_TERM}, "type"),
        Call("browser_click", {"tabId": tab, "clickId": ids["button"]}, "press"),
    ]


def _tab(results: list[dict[str, Any]]) -> int:
    tabs = [
        found["tabId"]
        for result in results
        for found in (
            result.get("result"),
            result.get("newTab"),
            result.get("page", {}).get("newTab"),
        )
        if isinstance(found, dict) and "tabId" in found
    ]
    return int(tabs[-1])
