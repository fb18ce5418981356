"""An agent downloads a file from a page and uploads it, and a file of the project, to another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from artifacts.models import Artifact
from runs.models import Run
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import SubmitGoal, page_field, tool_results
from tests.support.agent.model_server import ModelRequest, ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.page_server import PageResponse, PageServer
from tests.support.browser.template_sites import HEAD

ATTACHED = {"Content-Disposition": "attachment; filename=bill.csv"}
PAGE = (
    f"{HEAD}<title>Page</title><a href=/bill>Bill</a><input type=file multiple><script>"
    "onchange = async (event) => { for (const file of event.target.files)"
    " await fetch('/got?' + file.name + '=' + file.size); }</script>"
)


@pytest.mark.slow
def test_a_downloaded_file_and_a_file_of_the_project_are_uploaded(
    model: ModelServer, page_server: PageServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    got: list[str] = []

    def receive(query: str) -> PageResponse:
        got.append(query)
        return PageResponse()

    page_server.add("/bill", PageResponse(b"a,b\n", mime="text/csv", headers=ATTACHED))
    page_server.add("/got", receive)
    url = page_server.add("/page", PAGE)

    def answer(request: ModelRequest) -> Turn:
        results = tool_results(request)
        if not results:
            return Turn("", [Call("task_start", {"url": url})])
        tab = {"tabId": results[0]["result"]["tabId"]}
        if len(results) == 1:
            return Turn("", [Call("browser_click", {**tab, "xpath": "//a"})])
        if len(results) == 2:
            (file,) = page_field(results[1], "downloads")
            files = [{"artifactId": file["artifactId"]}, {"path": "game/scene/start.txt"}]
            upload = {**tab, "xpath": "//input", "files": files}
            return Turn("", [Call("browser_upload", upload)])
        return complete()

    model.answer = answer
    run_id = submit_goal()
    worker.work()
    run = Run.objects.get(id=run_id)
    assert run.status == "succeeded", run.error
    uploaded = tool_results(model.requests[-1])[2]
    assert uploaded["ok"], uploaded
    names = [file["fileName"] for file in page_field(uploaded, "files")]
    assert names == ["bill.csv", "start.txt"]
    assert [query.partition("=")[0] for query in got] == names
    stored = Artifact.objects.get(run_id=run_id, kind="download")
    assert (stored.name, stored.workspace_id) == ("bill.csv", run.workspace_id)


def test_a_page_is_read_although_the_result_of_its_opening_is_too_long_to_show(
    model: ModelServer,
    page_server: PageServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    agent_settings: Any,
) -> None:
    agent_settings.LLM = replace(agent_settings.LLM, context_tokens=4000)
    page_server.add("/bill", PageResponse(b"a,b\n" * 900, mime="text/csv", headers=ATTACHED))
    model.script = [Turn("", [Call("task_start", {"url": page_server.url("/bill")})]), complete()]
    run_id = submit_goal(tools=["task_start"])
    worker.work()
    run = Run.objects.get(id=run_id)
    assert run.status == "succeeded", run.error
    (started,) = tool_results(model.requests[-1])
    assert started["truncated"]
    assert started["page"]["ok"] is True
