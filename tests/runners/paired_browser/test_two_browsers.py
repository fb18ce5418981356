"""Two real browsers of one person, and one of another person: each action goes to the browser that
was chosen, and nobody's task acts in the browser of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from decisions.identity.principals import authenticate
from decisions.models import AuditEntry
from runs.worker.worker import WorkerProcess
from tests.support.agent.agent_goals import execute_run
from tests.support.browser.page_server import PageServer
from tests.support.extension.extension_browser import (
    ExtensionBrowser,
    extension_browser,
    find_full_chromium,
)
from tests.support.extension.visible_page import pair as pair_extension
from tests.support.runners.protocol_fixtures import PairBrowser, action_for, perform
from tests.support.runs.waiting import wait_until

pytestmark = pytest.mark.slow


@contextmanager
def browser_of(
    api: httpx.Client, web: str, profile: Path
) -> Iterator[tuple[ExtensionBrowser, str]]:
    """Run a Chromium that the caller of `api` pairs; yield it and its clientId."""
    before = {one["clientId"] for one in clients(api)}
    with extension_browser(profile) as browser:
        pair_extension(browser, web, api.post("/api/v1/plugin/ticket", json={}).json()["ticket"])
        wait_until(lambda: len(clients(api)) > len(before))
        (client_id,) = {one["clientId"] for one in clients(api)} - before
        yield browser, client_id


def clients(api: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get("/api/v1/plugin/clients").json()["clients"]
    return found


def chosen(api: httpx.Client) -> str:
    """Return the browser that is chosen for a new task of the caller."""
    task = api.post("/api/v1/tasks", json={"title": "T", "targetId": "plugin"})
    return str(task.json()["selectedClientId"])


def open_page(client_id: str, url: str) -> None:
    start = {"name": "task_start", "params": {"url": url}, "timeout_ms": 20_000}
    assert perform(action_for(client_id, task_id=f"task_{client_id}", **start)).status == "success"


def test_each_action_goes_to_the_chosen_browser_and_to_none_of_another_person(
    client_with: Callable[..., httpx.Client],
    web: str,
    page_server: PageServer,
    worker: WorkerProcess,
    pair: PairBrowser,
    tmp_path: Path,
) -> None:
    if find_full_chromium() is None:
        pytest.skip("There is no full Chromium, which extensions need.")
    mine, other = client_with(trust="local"), client_with(trust="local")
    stranger = pair(authenticate(other.headers["Authorization"].removeprefix("Bearer ")))
    urls = [page_server.add(f"/{name}", f"<title>{name}</title>") for name in ("one", "two")]
    with browser_of(mine, web, tmp_path / "first") as (first, first_id):
        with browser_of(mine, web, tmp_path / "second") as (second, second_id):
            open_page(first_id, urls[0])
            open_page(second_id, urls[1])
            assert [url in first.urls() for url in urls] == [True, False]
            assert [url in second.urls() for url in urls] == [False, True]
            assert chosen(mine) == second_id  # the one used last
            assert chosen(other) == stranger.session["clientId"]
            foreign = other.post("/api/v1/tasks", json={"title": "T", "targetId": first_id})
            assert (foreign.status_code, foreign.json()["errorCode"]) == (404, "TARGET_NOT_FOUND")
        wait_until(lambda: sum(one["connected"] for one in clients(mine)) == 1)
        assert chosen(mine) == first_id  # the one that is connected
        batch = {"urls": urls, "targetId": "plugin"}
        call = {"templateId": "batch_extract_pages", "inputs": batch, "options": {"mode": "async"}}
        run_id = mine.post("/api/v1/runs", json=call).json()["runId"]
        assert execute_run(run_id, worker).status == "succeeded"
        called = AuditEntry.objects.filter(action="tool.called", resource_id=run_id)
        assert {row.metadata["targetId"] for row in called} == {first_id}
    assert stranger.actions == []
