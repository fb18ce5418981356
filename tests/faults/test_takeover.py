"""The worker is killed while a person controls the page: the person is informed, and after the
person returns control, another worker opens the page again and the run continues."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import override_settings

from decisions.identity.principals import local_principal
from runs.conversations.services import create_task, resume_task, take_over_task
from runs.live.no_page import GIVE_BACK, LOST, no_page_reason
from runs.models import Run, Task
from tests.faults.installation import FaultInstallation
from tests.support.agent.agent_goals import tool_results
from tests.support.agent.browsing_model import serve_shop
from tests.support.agent.model_server import ModelRequest, ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.page_server import PageServer


@pytest.mark.slow
def test_a_page_lost_with_its_worker_is_reported_and_opened_again(
    installation: FaultInstallation, model: ModelServer, tmp_path: Path, page_server: PageServer
) -> None:
    url = serve_shop(page_server)

    def answer(request: ModelRequest) -> Turn:
        results = tool_results(request)
        if not results:
            return Turn("", [Call("task_start", {"url": url}, "open")])
        if len(results) > 1:
            return complete("Seen.")
        tab = results[0]["result"]["tabId"]
        return Turn("", [Call("browser_dom_index", {"tabId": tab}, "index")], stall_at=0)

    model.answer = answer
    env = {
        "CONTINUITY_WORKSPACE": str(tmp_path),
        "CONTINUITY_LLM_MODEL": "scripted",
        "CONTINUITY_LLM_BASE_URL": f"{model.url}/v1",
    }
    installation.start("scheduler")
    (worker,) = installation.workers(1, **env)
    principal = local_principal()
    with override_settings(WORKSPACE=tmp_path):
        task_id = create_task(principal=principal, message="Look.")[0]["taskId"]
    # The model is thinking, and the run has a page.
    installation.wait_until(lambda: len(model.requests) == 2)
    take_over_task(principal=principal, task_id=task_id)
    model.resume.set()
    installation.wait_until(
        lambda: Run.objects.get(task_id=task_id).pinned_worker, "the run is not suspended"
    )
    worker.kill()
    installation.workers(1, **env)
    reason = f"{LOST} {GIVE_BACK}"
    installation.wait_until(
        lambda: no_page_reason(task_id) == reason, "the lost page is not reported"
    )
    assert Task.objects.get(id=task_id).status == "takeover"
    resume_task(principal=principal, task_id=task_id)
    run = installation.wait_for_end(Run.objects.get(task_id=task_id).id)
    assert run.status == "succeeded", run.error
    assert Task.objects.get(id=task_id).status == "ongoing"
    (_, index) = tool_results(model.requests[-1])
    assert index["error"]["code"] == "PERSON_HAD_PAGE"
    assert index["page"]["newTab"]["url"] == url
    installation.check_invariants()
