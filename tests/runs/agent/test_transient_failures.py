"""Browser actions of the agent that fail with a transient error (S1 §5.1), and actions that wait
for a person's confirmation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from decisions.authorization.policy_rules import RuleFields, create_rule
from runners.errors import NavigationTimeout
from runners.tools import registry
from runners.tools.registry import get_tool
from runs.models import Run
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import SubmitGoal, tool_results
from tests.support.agent.browsing_model import serve_shop
from tests.support.agent.model_server import ModelRequest, ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.page_server import PageServer
from tests.support.decisions.confirmations import answer_confirmation

SCAN = "browser_xpath_scan"


@pytest.fixture
def scanning_model(model: ModelServer, page_server: PageServer) -> None:
    """Return a model that opens a page, indexes its elements, and completes."""
    url = serve_shop(page_server)

    def answer(request: ModelRequest) -> Turn:
        results = tool_results(request)
        if not results:
            return Turn("", [Call("task_start", {"url": url}, "open")])
        scan = Call(SCAN, {"tabId": results[0]["result"]["tabId"]}, "scan")
        return complete() if len(results) > 1 else Turn("", [scan])

    model.answer = answer


@pytest.mark.slow
@pytest.mark.usefixtures("scanning_model")
@pytest.mark.parametrize(("failures", "ok"), [(1, True), (2, False)])
def test_a_transient_failure_is_retried_once(
    model: ModelServer,
    submit_goal: SubmitGoal,
    worker: WorkerProcess,
    monkeypatch: pytest.MonkeyPatch,
    failures: int,
    ok: bool,
) -> None:
    tool = get_tool(SCAN)
    assert tool is not None
    tries: list[int] = []

    async def scan(args: Any, ctx: Any) -> Mapping[str, Any]:
        tries.append(len(tries))
        if len(tries) <= failures:
            raise NavigationTimeout("The page was busy.")
        return await tool.function(args, ctx)

    monkeypatch.setitem(registry._tools, SCAN, replace(tool, function=scan))
    run_id = submit_goal()
    worker.work()
    assert Run.objects.get(id=run_id).status == "succeeded"
    last = tool_results(model.requests[-1])[-1]
    assert (last["ok"], len(tries)) == (ok, 2)
    assert ok or last["error"]["code"] == "NAVIGATION_TIMEOUT"


@pytest.mark.usefixtures("scanning_model")
def test_a_page_that_stayed_open_while_a_person_confirmed_is_indexed_again(
    model: ModelServer, submit_goal: SubmitGoal, worker: WorkerProcess
) -> None:
    create_rule(RuleFields("confirm", tool=SCAN, reason="test"), actor="t")
    run_id = submit_goal()
    worker.work()
    answer_confirmation(Run.objects.get(id=run_id))
    worker.work()
    assert Run.objects.get(id=run_id).status == "succeeded"
    opened, scan = tool_results(model.requests[-1])
    assert (scan["ok"], scan["page"]["ok"]) == (True, True)
    screenshots = [one["page"]["screenshot"] for one in (opened, scan)]
    assert len(set(screenshots)) == 2
