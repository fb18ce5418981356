"""The browser of an agent's run, or its Playwright driver, is killed: the worker reports that to
the model and opens the page again, and the run continues."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import psutil
import pytest

from tests.faults.installation import FaultInstallation
from tests.faults.test_agent_kills import results_by_call_id, start_workers, submit_goal
from tests.support.agent.browsing_model import BrowsingModel, serve_shop
from tests.support.agent.model_server import ModelRequest, ModelServer
from tests.support.agent.model_turns import Turn
from tests.support.browser.page_server import PageServer


def kill(*names: str) -> None:
    """Kill the processes of this test's workers whose name contains one of these words."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if any(name in process.name() for name in names):
                process.kill()


@pytest.mark.parametrize(
    "names",
    [("chrom", "headless"), pytest.param(("node",), marks=pytest.mark.slow)],
    ids=["browser", "driver"],
)
def test_a_click_on_a_killed_browser_is_reported_and_the_page_is_reopened(
    installation: FaultInstallation,
    model: ModelServer,
    tmp_path: Path,
    page_server: PageServer,
    names: tuple[str, ...],
) -> None:
    start_workers(installation, model, tmp_path)
    browsing, pressed = BrowsingModel(serve_shop(page_server)), threading.Event()

    def answer(request: ModelRequest) -> Turn:
        turn = browsing(request)
        if any(call.name == "browser_click" for call in turn.calls) and not pressed.is_set():
            pressed.set()
            kill(*names)
        return turn

    model.answer = answer
    run = installation.wait_for_end(submit_goal(installation, tmp_path), 120)
    (lost,) = [
        result for result in results_by_call_id(model.requests[-1]).values() if not result["ok"]
    ]
    assert (lost["name"], lost["error"]["code"]) == ("browser_click", "TASK_TAB_CLOSED")
    assert lost["error"]["details"].get("effect", "none") == "none"
    assert lost["newTab"]["url"] == page_server.url("/shop")
    assert lost["page"]["url"] == page_server.url("/shop")
    assert run.status == "succeeded", run.error
    assert run.times_lost == 0
    installation.check_invariants()
