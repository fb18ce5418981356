"""A person took over the agent's page: calls planned for the previous page are not made, and the
model receives the current page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from decisions.identity.principals import local_principal
from runs.models import Run, RunStep, Task
from runs.submission.answer import answer_run
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import tool_results
from tests.support.agent.browsing_model import serve_shop
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.page_server import PageResponse, PageServer
from tests.support.browser.template_sites import HEAD

Post = Callable[[str], None]
BrowseShop = Callable[[Callable[[list[dict[str, Any]]], Turn]], str]
READ = Call("read_file", {"path": "game/scene/start.txt"}, "read")


@pytest.fixture
def post(api: httpx.Client) -> Post:
    """Post a request to the task: `post("takeover")`."""

    def do(action: str) -> None:
        (task,) = api.get("/api/v1/tasks").json()["tasks"]
        assert api.post(f"/api/v1/tasks/{task['taskId']}/{action}").status_code == 200

    return do


@pytest.fixture
def browse_shop(model: ModelServer, page_server: PageServer, agent_settings: Any) -> BrowseShop:
    """Let the model open the shop, then answer with the given function of the calls' results;
    return the shop's URL.
    """

    def do(next_turn: Callable[[list[dict[str, Any]]], Turn]) -> str:
        url = serve_shop(page_server)
        opening = Turn("", [Call("task_start", {"url": url}, "open")])

        def answer(request: Any) -> Turn:
            results = tool_results(request)
            return next_turn(results) if results else opening

        model.answer = answer
        return url

    return do


def index_and_click(tab: int, turn: str) -> list[Call]:
    """Return two calls that are planned for the page as the model last read it."""
    return [
        Call("browser_dom_index", {"tabId": tab}, f"index{turn}"),
        Call("browser_click", {"tabId": tab, "xpath": "//a"}, f"click{turn}"),
    ]


def test_a_page_that_a_person_returns_is_indexed_again(
    model: ModelServer,
    browse_shop: BrowseShop,
    api: httpx.Client,
    worker: WorkerProcess,
    post: Post,
) -> None:
    def next_turn(results: list[dict[str, Any]]) -> Turn:
        if len(results) == 1:
            post("takeover")
            return Turn("", index_and_click(results[0]["result"]["tabId"], ""))
        return complete()

    url = browse_shop(next_turn)
    api.post("/api/v1/tasks", json={"message": "Look."})
    worker.work()
    assert Task.objects.get().status == "takeover"
    assert RunStep.objects.filter(name="browser_dom_index").get().status == "pending"
    post("resume")
    worker.work()
    assert Run.objects.get().status == "succeeded", Run.objects.get().error
    opened, index, click = tool_results(model.requests[-1])
    codes = [one.get("error", {}).get("code") for one in (index, click)]
    assert codes == ["PERSON_HAD_PAGE", "PERSON_HAD_PAGE"]
    assert click["page"]["url"] == url
    assert opened["page"]["screenshot"] != click["page"]["screenshot"]


def test_a_page_returned_before_the_next_call_is_indexed_again_too(
    model: ModelServer,
    browse_shop: BrowseShop,
    api: httpx.Client,
    worker: WorkerProcess,
    post: Post,
) -> None:
    def next_turn(results: list[dict[str, Any]]) -> Turn:
        tab = results[0]["result"]["tabId"]
        if len(results) == 1:  # the model still plans for the previous page
            post("takeover")
            post("resume")
            return Turn("", index_and_click(tab, "1"))
        return complete() if len(results) > 3 else Turn("", index_and_click(tab, "2"))

    browse_shop(next_turn)
    api.post("/api/v1/tasks", json={"message": "Look."})
    worker.work()
    assert Run.objects.get().status == "succeeded", Run.objects.get().error
    results = tool_results(model.requests[-1])
    codes = [one.get("error", {}).get("code") for one in results]
    assert codes == [None, "PERSON_HAD_PAGE", "PERSON_HAD_PAGE", None, None]
    assert [RunStep.objects.filter(name="page").count(), "page" in results[2]] == [3, True]
    assert "timesGivenBack" not in str(results)


@pytest.mark.slow
def test_a_page_taken_over_while_another_call_waited_is_indexed_before_the_next_turn(
    model: ModelServer,
    page_server: PageServer,
    api: httpx.Client,
    worker: WorkerProcess,
    agent_settings: Any,
    post: Post,
    project: Path,
) -> None:
    url = serve_shop(page_server)
    opened = Turn("", [Call("task_start", {"url": url}, "open")])
    question_call = Call("ask_followup_question", {"question": "Which?"})
    model.script = [opened, Turn("", [question_call, READ]), complete()]
    api.post("/api/v1/tasks", json={"message": "Look."})
    worker.work()
    post("takeover")
    answer_run(principal=local_principal(), run_id=Run.objects.get().id, answer="red")
    worker.work()
    waiting_for = Run.objects.get().waiting_for
    assert (waiting_for["type"], len(model.requests)) == ("takeover", 2)
    post("resume")
    worker.work()
    assert Run.objects.get().status == "succeeded", Run.objects.get().error
    _, question, read = tool_results(model.requests[-1])
    assert (question["result"]["answer"], "page" in question) == ("red", False)
    assert (read["ok"], read["page"]["url"]) == (True, url)


@pytest.fixture
def clicking(model: ModelServer, page_server: PageServer) -> Callable[[Callable[[], None]], None]:
    """Make a model open a page, click there and index the page; during the click, run a function
    once."""

    def make(meanwhile: Callable[[], None]) -> None:
        def hit(query: str) -> PageResponse:
            meanwhile()
            return PageResponse(b"done")

        page_server.add("/hit", hit)
        request_hit = "const ask = new XMLHttpRequest(); ask.open('GET', '/hit', false); ask.send()"
        url = page_server.add(
            "/page", f'{HEAD}<title>P</title><button onclick="{request_hit}">Go</button>'
        )

        def answer(request: Any) -> Turn:
            results = tool_results(request)
            if not results:
                return Turn("", [Call("task_start", {"url": url}, "open")])
            tab = {"tabId": results[0]["result"]["tabId"]}
            click = Call("browser_click", {**tab, "xpath": "//button"}, "click")
            scan = Call("browser_xpath_scan", tab, "scan")
            return complete() if len(results) > 1 else Turn("", [click, scan])

        model.answer = answer

    return make


def test_a_click_in_flight_ends_and_is_not_repeated(
    model: ModelServer,
    page_server: PageServer,
    api: httpx.Client,
    worker: WorkerProcess,
    agent_settings: Any,
    post: Post,
    clicking: Callable[[Callable[[], None]], None],
) -> None:
    clicking(lambda: post("takeover"))
    api.post("/api/v1/tasks", json={"message": "Click."})
    worker.work()
    assert (Task.objects.get().status, page_server.hits["/hit"]) == ("takeover", 1)
    *_, click_step, page_step = RunStep.objects.order_by("index")
    assert (click_step.status, page_step.name, page_step.status) == ("succeeded", "page", "pending")
    post("resume")
    worker.work()
    assert Run.objects.get().status == "succeeded", Run.objects.get().error
    _, click, scan = tool_results(model.requests[-1])
    # The page was read before the scan, but not yet for the model.
    assert (click["page"]["ok"], scan["error"]["code"]) == (True, "PERSON_HAD_PAGE")
    assert (scan["page"]["ok"], page_server.hits["/hit"]) == (True, 1)


def test_a_stop_during_a_click_lets_no_further_call_start(
    model: ModelServer,
    page_server: PageServer,
    api: httpx.Client,
    worker: WorkerProcess,
    agent_settings: Any,
    post: Post,
    clicking: Callable[[Callable[[], None]], None],
) -> None:
    clicking(lambda: post("stop"))
    api.post("/api/v1/tasks", json={"message": "Click."})
    worker.work()
    assert (Run.objects.get().status, page_server.hits["/hit"]) == ("canceled", 1)
    scans = RunStep.objects.filter(name="browser_xpath_scan", status="succeeded")
    assert (scans.exists(), len(model.requests), Task.objects.get().status) == (False, 2, "ongoing")
