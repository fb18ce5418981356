"""An agent in a real browser with the extension: it reads a page, waits for a person before its
first change and before a submit, and its results are as in the worker's browser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from artifacts.models import Artifact
from runs.models import Run
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import execute_run, observations, tool_results
from tests.support.agent.model_server import ModelServer
from tests.support.agent.model_turns import Call, Turn, complete
from tests.support.browser.page_server import PageResponse, PageServer
from tests.support.decisions.confirmations import answer_confirmation
from tests.support.extension.extension_browser import (
    ExtensionBrowser,
    extension_browser,
    find_full_chromium,
)
from tests.support.extension.extension_fixtures import RECONNECT
from tests.support.extension.visible_page import overlay_texts
from tests.support.runners.protocol_browser import pair_browser
from tests.support.runs.waiting import wait_until

pytestmark = pytest.mark.slow
Paired = tuple[str, ExtensionBrowser]
SHOP = """<!doctype html><title>Shop</title><h1>Shop</h1><p>Tea and coffee.</p>
<button onclick="this.textContent='Clicked'">More</button>
<form action="/bought"><input name="who" aria-label="Name"><button>Buy</button></form>"""


@pytest.fixture
def paired_extension(api: httpx.Client, web: str, tmp_path: Path) -> Iterator[Paired]:
    """Run a Chromium with the extension that the caller of `api` paired; yield its clientId too."""
    if find_full_chromium() is None:
        pytest.skip("There is no full Chromium, which extensions need.")
    ticket = api.post("/api/v1/plugin/ticket", json={}).json()["ticket"]
    with pair_browser(web, ticket) as first:
        paired = {name: first.session[name] for name in ("clientId", "secret")}
    with extension_browser(tmp_path / "profile") as browser:
        stored = json.dumps({"pairing": {"server": web, **paired}})
        browser.evaluate(f"chrome.storage.local.set({stored})")
        browser.evaluate(RECONNECT)
        about = f"/api/v1/plugin/clients/{paired['clientId']}"
        wait_until(lambda: api.get(about).json()["connected"])
        yield paired["clientId"], browser


def number_of(request: Any, label: str) -> int:
    """Return the clickId of the element with this label in the newest observation."""
    (found,) = re.findall(rf'\[(\d+)\]\*? [^\n]*"{label}"', observations(request)[-1]["text"])
    return int(found)


def test_an_agent_buys_in_a_real_browser_after_two_confirmations(
    model: ModelServer,
    page_server: PageServer,
    api: httpx.Client,
    worker: WorkerProcess,
    agent_settings: Any,
    project: Path,
    paired_extension: Paired,
) -> None:
    url = page_server.add("/shop", SHOP)
    page_server.add("/bought", lambda query: PageResponse(b"<title>Thanks</title>Bought."))

    def answer(request: Any) -> Turn:
        results = tool_results(request)
        if not results:
            return Turn("", [Call("task_start", {"url": url}, "open")])
        tab = {"tabId": results[0]["result"]["tabId"]}
        if len(results) > 3:
            return complete()
        name, label, more = (
            ("browser_click", "More", {}),
            ("browser_type", "Name", {"text": "Ada"}),
            ("browser_click", "Buy", {}),
        )[len(results) - 1]
        return Turn("", [Call(name, {**tab, "clickId": number_of(request, label), **more}, label)])

    model.answer = answer
    api.post("/api/v1/tasks", json={"message": "Buy tea.", "targetId": "plugin"})
    run = execute_run(Run.objects.get().id, worker)
    assert 'button "More"' in run.waiting_for["question"], run.error
    answer_confirmation(run)
    run = execute_run(run.id, worker)
    assert 'button "Buy" submits' in run.waiting_for["question"], run.error
    assert page_server.hits["/bought"] == 0
    page = paired_extension[1].page(url)
    approval = f"Continuity waits for your approval: submit a form on {urlsplit(url).netloc}"
    wait_until(lambda: approval in overlay_texts(page))
    page.close()
    answer_confirmation(run)
    run = execute_run(run.id, worker)
    assert (run.status, run.error) == ("succeeded", None)
    assert page_server.hits["/bought"] == 1
    assert [one["ok"] for one in tool_results(model.requests[-1])] == [True] * 4
    assert "Bought." in observations(model.requests[-1])[-1]["text"]
    pictures = Artifact.objects.filter(kind="screenshot", run_id=run.id)
    assert pictures.count() == 4
    assert all(picture.size_bytes > 1000 for picture in pictures)


def test_a_batch_is_read_in_a_real_browser(
    page_server: PageServer,
    api: httpx.Client,
    worker: WorkerProcess,
    paired_extension: Paired,
) -> None:
    page = "<title>P{0}</title><h1>H{0}</h1>Text {0}."
    urls = [page_server.add(f"/page{number}", page.format(number)) for number in "12"]
    inputs = {"urls": urls, "targetId": "plugin"}
    call = {"templateId": "batch_extract_pages", "inputs": inputs, "options": {"mode": "async"}}
    submitted = api.post("/api/v1/runs", json=call).json()
    run = execute_run(submitted["runId"], worker)
    assert (run.status, run.error) == ("succeeded", None)
    items = run.result["items"]
    assert [(one["title"], one["pageType"]) for one in items] == [("P1", "page"), ("P2", "page")]
    assert all(f"Text {number}." in str(one["content"]) for number, one in enumerate(items, 1))


def test_the_tab_of_a_canceled_batch_is_closed_in_a_real_browser(
    page_server: PageServer, api: httpx.Client, worker: WorkerProcess, paired_extension: Paired
) -> None:
    def cancel(query: str) -> PageResponse:
        assert api.post(f"/api/v1/runs/{submitted['runId']}/cancel", json={}).is_success
        return PageResponse(b"<title>Late</title>")

    urls = [page_server.add("/first", "<title>First</title>"), page_server.add("/late", cancel)]
    inputs = {"urls": urls, "targetId": "plugin"}
    call = {"templateId": "batch_extract_pages", "inputs": inputs, "options": {"mode": "async"}}
    submitted = api.post("/api/v1/runs", json=call).json()
    assert execute_run(submitted["runId"], worker).status == "canceled"
    snapshot = f"/api/v1/plugin/clients/{paired_extension[0]}/snapshot"
    wait_until(lambda: page_server.url("/") not in str(api.get(snapshot).json()["state"]["tabs"]))
