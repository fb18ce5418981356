"""Bring about the S0 error codes that only a page can cause."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runners.browser.pool.runtime import get_runtime
from runners.invocation.event_loop import get_loop
from tests.contract.api_client import Answer, Surface
from tests.support.browser.login_site import PASSWORD, USERNAME
from tests.support.browser.page_server import PageServer, html

TIMEOUT_S = 60.0
STEPS_BEFORE_WAITING = 3  # of search_extract: open, enter, submit
FORM = "<title>Search</title><form action=/results><input type=search name=q></form>"
# The same by script: a test can crash a renderer only while no other document is loading.
SCRIPTED = f"""{FORM}<script>
document.forms[0].addEventListener("submit", async (event) => {{
  event.preventDefault();
  document.body.innerHTML = await (await fetch("/results")).text();
}});
</script>"""
FIELD = {"mode": "semantic", "query": "search"}


@dataclass
class Pages:
    """The sites that the runs open: a server of this process, and a site with a login."""

    server: PageServer
    members: str

    def repair(self) -> None:
        """Have the server that did not answer, answer from now on."""
        self.server.add("/results", "<title>Results</title><h1>Found</h1><p class=result>One.")


@dataclass(frozen=True)
class PageCause:
    """How a test brings about a code.

    Attributes:
        bring_about: ends a run with the code and returns the run.
        step: the step that fails.
        leaves_a_page: whether a page remains for a screenshot.
    """

    bring_about: Callable[[Surface, Pages], Answer]
    step: str
    is_retryable: bool
    leaves_a_page: bool


def _run_to_end(surface: Surface, template_id: str, **inputs: Any) -> Answer:
    options = {"mode": "sync", "timeoutMs": 100_000}
    return surface.call("run_task_template", templateId=template_id, inputs=inputs, options=options)


def _no_such_element(surface: Surface, pages: Pages) -> Answer:
    url = pages.server.add("/bare", "<title>Bare</title><h1>Nothing to fill in</h1>")
    return _run_to_end(surface, "search_extract", startUrl=url, query="q", searchField=FIELD)


def _search_inputs(pages: Pages, form: str) -> dict[str, Any]:
    """Return the inputs of a search whose server accepts the request and does not answer."""
    pages.server.add("/results", html("", delay=3600.0))
    condition = {"type": "selector", "value": ".result", "timeoutMs": 50_000}
    url = pages.server.add("/", form)
    return {"startUrl": url, "query": "q", "searchField": FIELD, "waitForResults": condition}


def _hanging_server(surface: Surface, pages: Pages) -> Answer:
    return _run_to_end(surface, "search_extract", **_search_inputs(pages, FORM))


def _crashed_renderer(surface: Surface, pages: Pages) -> Answer:
    inputs = _search_inputs(pages, SCRIPTED)
    handle = surface.call(
        "run_task_template", templateId="search_extract", inputs=inputs, options={"mode": "async"}
    )
    deadline = time.monotonic() + TIMEOUT_S
    while not pages.server.hits["/results"] or _done_steps(surface, handle) < STEPS_BEFORE_WAITING:
        assert time.monotonic() < deadline, "the search was never sent"
        time.sleep(0.05)
    get_loop().submit(_crash_renderers()).result(TIMEOUT_S)
    return surface.call("wait_task_run", runId=handle["runId"], waitMs=55_000)


def _done_steps(surface: Surface, handle: Answer) -> int:
    """Return how many steps are done: the page may send the search while its step still runs."""
    return int(surface.call("get_task_run", runId=handle["runId"])["progress"]["doneSteps"])


async def _crash_renderers() -> None:
    """Kill the browser's renderer processes, which its DevTools protocol lists."""
    browser = await get_runtime().browser()
    devtools = await browser.new_browser_cdp_session()
    for process in (await devtools.send("SystemInfo.getProcessInfo"))["processInfo"]:
        if process["type"] == "renderer":
            with contextlib.suppress(ProcessLookupError):
                os.kill(process["id"], signal.SIGKILL)
    await devtools.detach()


def _no_login_field(surface: Surface, pages: Pages) -> Answer:
    return _run_to_end(
        surface,
        "login_keep_session",
        startUrl=f"{pages.members}/login",
        credentials={"username": USERNAME, "password": PASSWORD},
        fields={"mode": "selector", "usernameSelector": "#u", "passwordSelector": "#nowhere"},
    )


PAGE_CAUSES: Mapping[str, PageCause] = {
    "ELEMENT_NOT_FOUND": PageCause(_no_such_element, "enter the query", True, True),
    "NAVIGATION_TIMEOUT": PageCause(_hanging_server, "wait for the results", True, True),
    "PAGE_CRASHED": PageCause(_crashed_renderer, "wait for the results", True, False),
    "TPL_LOGIN_FIELD_NOT_FOUND": PageCause(_no_login_field, "fill in the password", False, True),
}
