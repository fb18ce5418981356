"""What was judged is what is done, in a real browser with the extension: a confirmed click presses
the element that the person saw, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from runs.models import Run
from runs.worker.worker import WorkerProcess
from tests.e2e.test_paired_browser import Paired, number_of
from tests.e2e.test_paired_browser import paired_extension as paired_extension
from tests.support.agent.agent_goals import execute_run, tool_results
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.editor_page import DELETE, Editor
from tests.support.browser.page_server import PageResponse, PageServer
from tests.support.decisions.confirmations import answer_confirmation

pytestmark = pytest.mark.slow
Act = Callable[..., Run]


@pytest.fixture
def act(
    model: ModelServer,
    api: httpx.Client,
    worker: WorkerProcess,
    agent_settings: Any,
    project: Path,
    paired_extension: Paired,
) -> Act:
    """Run an agent that opens a page in the paired browser and clicks, until it waits or ends."""

    def run(url: str, label: str, **more: Any) -> Run:
        def answer(request: Any) -> Turn:
            results = tool_results(request)
            if not results:
                return Turn("", [Call("task_start", {"url": url}, "open")])
            if len(results) > 1:
                return complete()
            tab = {"tabId": results[0]["result"]["tabId"]}
            number = number_of(request, label)
            return Turn("", [Call("browser_click", {**tab, "clickId": number, **more}, "act")])

        model.answer = answer
        api.post("/api/v1/tasks", json={"message": "Act.", "targetId": "plugin"})
        return execute_run(Run.objects.get().id, worker)

    return run


def test_a_toast_that_vanishes_leads_to_no_submit(
    act: Act, page_server: PageServer, model: ModelServer
) -> None:
    page_server.add("/bought", lambda query: PageResponse(b"Bought."))
    url = page_server.add(
        "/shop",
        "<title>Shop</title><button id=undo>Undo</button><form action=/bought><button>Buy</button>"
        "</form><script>onblur = onfocus = null; setTimeout(() => undo.remove(), 4000)</script>",
    )
    run = act(url, "Undo", xpath="//form//button")
    assert page_server.hits["/bought"] == 0
    assert (run.status, run.waiting_for) == ("succeeded", None)
    error = tool_results(model.requests[-1])[1]["error"]
    assert error["details"]["reason"] in ("two_elements", "gone")


@pytest.mark.parametrize(
    "change",
    [
        DELETE,
        f"addEventListener('pointermove', () => {{ {DELETE} }}, {{once: true, capture: true}})",
        f"addEventListener('pointerdown', () => {{ {DELETE} }}, {{once: true, capture: true}})",
    ],
    ids=["while it waits", "at the movement", "at the press"],
)
def test_an_element_that_becomes_another_one_is_not_pressed(
    act: Act, page_server: PageServer, worker: WorkerProcess, change: str
) -> None:
    editor = Editor(page_server)
    run = act(editor.url, "Save draft")
    assert 'button "Save draft" submits' in run.waiting_for["question"], run.error
    editor.make(change)
    answer_confirmation(run)
    run = execute_run(run.id, worker)
    assert editor.pressed == []
    if change == DELETE:
        assert 'button "Delete account" submits' in run.waiting_for["question"]


def test_an_element_that_stays_as_it_was_is_pressed_once(
    act: Act, page_server: PageServer, worker: WorkerProcess
) -> None:
    editor = Editor(page_server)
    answer_confirmation(act(editor.url, "Save draft"))
    run = execute_run(Run.objects.get().id, worker)
    assert (run.status, run.error, editor.pressed) == ("succeeded", None, ["/drafts"])
