"""Pages whose address is rejected in a run of calls that continues after failed calls: each is a
failed result of its call and one row of the audit log, and the next calls are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from decisions.identity.principals import Principal
from decisions.models import AuditEntry
from runners.targets.local_folder import LocalFolder, set_local_folder
from runs.models import Run
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.browser.page_server import PageResponse, PageServer, serve_pages

RunCalls = Callable[..., Run]


@pytest.fixture
def run_calls(worker: WorkerProcess, close_browser: None, principal: Principal) -> RunCalls:
    """Submit calls as a run that continues after failed calls, work it, and return it."""

    def make(*calls: tuple[str, dict[str, Any]], caller: Principal = principal) -> Run:
        inputs = {
            "calls": [{"name": name, "args": args} for name, args in calls],
            "stopOnError": False,
        }
        run_id = submit_run(
            principal=caller, template_id="call_tools", inputs=inputs, options={"mode": "async"}
        ).run_id
        worker.work()
        return Run.objects.get(id=run_id)

    return make


@pytest.fixture
def developer_project(project: Path) -> Iterator[Path]:
    """Return the project's folder, in developer mode."""
    set_local_folder(LocalFolder(project, is_named=True, developer=True))
    yield project
    set_local_folder(None)


@pytest.fixture
def outside() -> Iterator[str]:
    """Serve a page at an address other than those of the two names; no request may arrive."""
    with serve_pages("127.0.0.2") as server:
        yield server.add("/outside", "<title>Outside</title>")
        assert server.hits.total() == 0


def outcomes(run: Run) -> list[str]:
    """Return the outcome of each call: ok, or its code."""
    assert run.result is not None, run.error
    return [one["error"]["code"] if "error" in one else "ok" for one in run.result["results"]]


def refused_addresses(run: Run) -> list[tuple[int, str]]:
    """Return the rejected addresses of the audit log: the step and the host."""
    rows = AuditEntry.objects.filter(action="address.refused", resource_id=run.id).order_by("id")
    return [(row.metadata["step"], row.metadata["host"]) for row in rows]


def act(action: str, **args: Any) -> tuple[str, dict[str, Any]]:
    return "browser_action", {"action": action, **args}


def test_a_rejected_address_stops_no_later_action(
    run_calls: RunCalls, developer_project: Path, page_server: PageServer, outside: str
) -> None:
    redirect = page_server.add("/out", PageResponse(status=302, headers={"Location": outside}))
    game = page_server.add("/game", f"<title>Game</title><a id=go href='{outside}'>go</a>")
    run = run_calls(
        act("open", url=redirect),
        act("open", url=game),
        act("click", selector="#go"),
        act("open", url=game),
        act("screenshot", path="a.png"),
    )
    denied = "E_POLICY_VIOLATION"
    assert (run.status, outcomes(run)) == ("partial_success", [denied, "ok", denied, "ok", "ok"])
    assert refused_addresses(run) == [(0, "127.0.0.2"), (2, "127.0.0.2")]
    assert (developer_project / "a.png").exists()


def test_a_page_that_a_click_tried_to_leave_does_not_count_as_open(
    run_calls: RunCalls, developer_project: Path, page_server: PageServer, outside: str
) -> None:
    game = page_server.add("/game", f"<title>Game</title><a id=go href='{outside}'>go</a>")
    run = run_calls(
        act("open", url=game), act("click", selector="#go"), act("screenshot", path="a.png")
    )
    assert outcomes(run) == ["ok", "E_POLICY_VIOLATION", "E_PREVIEW_FAIL"]
    assert not (developer_project / "a.png").exists()


def test_a_rejected_page_of_a_remote_caller_is_audited_though_the_run_continues(
    run_calls: RunCalls, project: Path, page_server: PageServer, principal: Principal
) -> None:
    url = page_server.add("/secret", "<title>Inside</title>")
    remote = principal.with_trust("remote")
    read = "read_page", {"url": url}
    run = run_calls(read, read, ("list_files", {"path": "."}), caller=remote)
    assert outcomes(run) == ["TRUST_LEVEL_NOT_ALLOWED"] * 2 + ["ok"]
    assert [step for step, _ in refused_addresses(run)] == [0, 1]
    assert page_server.hits["/secret"] == 0
