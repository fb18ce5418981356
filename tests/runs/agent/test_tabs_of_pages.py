"""An agent works in a window that a page opened, and goes on when it closes itself."""

from __future__ import annotations

import re

from runs.models import Run, RunStep
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import SubmitGoal, tool_results
from tests.support.agent.model_server import ModelRequest, ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.page_server import PageServer
from tests.support.browser.template_sites import HEAD

OPENER = "<button onclick=\"window.open('/child')\">Open</button><p id=p>none"
CHILD = (
    "<title>Child</title><button onclick=\"opener.p.textContent = 'chosen';"
    ' setTimeout(() => window.close(), 0)">Choose'
)


def test_after_a_window_that_closes_itself_the_page_of_its_opener_is_read(
    model: ModelServer, page_server: PageServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    page_server.add("/child", CHILD)
    url = page_server.add("/page", f"{HEAD}<title>Page</title>{OPENER}")

    def answer(request: ModelRequest) -> Turn:
        results = tool_results(request)
        if not results:
            return Turn("", [Call("task_start", {"url": url})])
        if len(results) > 2:
            return complete()
        tab = results[0]["result"]["tabId"]
        if len(results) == 2:
            tab = int(re.findall(r"the tab (\d+)", results[1]["untrusted"])[0])
        return Turn("", [Call("browser_click", {"tabId": tab, "xpath": "//button"})])

    model.answer = answer
    run_id = submit_goal()
    worker.work()
    run = Run.objects.get(id=run_id)
    assert run.status == "succeeded", run.error
    started = tool_results(model.requests[-1])[0]["result"]
    assert "chosen" in str(model.requests[-1].body["messages"][-1])
    page = RunStep.objects.filter(run=run, name="page").latest("index")
    assert (page.output or {})["newTab"] == {"tabId": started["tabId"]}
