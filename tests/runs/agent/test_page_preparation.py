"""Pages that cannot be prepared for an agent, wholly or in part (S1 §4.5): real ones, with a
shorter timeout for each action than by default."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runners.tools import registry
from runners.tools.registry import get_tool
from runs.models import Run, RunStep
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import SubmitGoal, page_field, tool_results
from tests.support.agent.model_server import ModelRequest, ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.page_server import PageResponse, PageServer
from tests.support.browser.template_sites import HEAD

NAVIGATE_AWAY = "location = '/never-there'"
TOO_LONG = f"<main><h1>All</h1><p>{'word ' * 450_000}</p></main>"  # over 2 MiB of text


@pytest.fixture
def short_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a timeout of two seconds for each action of page preparation instead of ten and
    twenty."""
    for part in ("wait_for_loaded", "screenshot", "readability_extract"):
        tool = get_tool(f"browser_{part}")
        assert tool is not None
        monkeypatch.setitem(registry._tools, tool.name, replace(tool, timeout_ms=2000))


@pytest.mark.slow
@pytest.mark.usefixtures("short_timeouts")
def test_a_page_that_navigates_to_an_address_without_an_answer_ends_the_run(
    model: ModelServer, page_server: PageServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    page_server.add("/never-there", PageResponse(delay=60.0))
    button = f'<button onclick="{NAVIGATE_AWAY}">Go</button>'
    url = page_server.add("/page", f"{HEAD}<title>Page</title>{button}")

    def answer(request: ModelRequest) -> Turn:
        results = tool_results(request)
        if not results:
            return Turn("", [Call("task_start", {"url": url})])
        click = {"tabId": results[0]["result"]["tabId"], "xpath": "//button"}
        return Turn("", [Call("browser_click", click)])

    model.answer = answer
    run_id = submit_goal()
    worker.work()
    run = Run.objects.get(id=run_id)
    assert (run.status, run.error["errorCode"]) == ("failed", "STEP_EXECUTION_FAILED")
    assert (run.error["details"]["causeCode"], run.error["retryable"]) == ("PAGE_PREP_FAILED", True)
    assert sorted(run.error["details"]["causes"]) == ["readability", "screenshot"]
    page_step = RunStep.objects.get(run=run, index=run.total_steps - 1)
    assert (page_step.name, page_step.status, len(model.requests)) == ("page", "failed", 2)


@pytest.mark.slow
def test_a_page_with_too_much_text_is_sent_as_a_screenshot_with_a_note(
    model: ModelServer, page_server: PageServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    url = page_server.add("/page", f"{HEAD}<title>Page</title>{TOO_LONG}")

    def answer(request: ModelRequest) -> Turn:
        results = tool_results(request)
        return (
            complete()
            if results
            else Turn("", [Call("task_start", {"url": url, "groupTitle": "x"})])
        )

    model.answer = answer
    run_id = submit_goal()
    worker.work()
    run = Run.objects.get(id=run_id)
    assert run.status == "succeeded", run.error
    (started,) = tool_results(model.requests[-1])
    assert len(page_field(started, "warnings")) == 1
    assert "warnings" not in started["result"]
    page = started["page"]
    assert (page["missing"], "wholeText" in page) == (["readability"], False)
    assert page["url"] == url
    assert page["screenshot"].startswith("art_")
    assert "No readability of the page" in str(page_field(page, "warnings"))
