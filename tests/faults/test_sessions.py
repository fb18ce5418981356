"""Sessions and credentials when workers die: another worker restores the session with a warning,
never as a blank page; a secret is encrypted while it is stored, and deleted at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decisions.identity.principals import local_principal
from runners.models import BrowserSession
from runs.models import Run, RunSecret, RunStep
from runs.sessions.services import close_session
from runs.submission.submit import submit_run
from runs.submission.submitted_run import SubmittedRun
from tests.faults.installation import FaultInstallation
from tests.support.audit.secret_search import every_row, find_secret
from tests.support.browser.login_fixtures import SELECTORS, WELCOME
from tests.support.browser.login_site import PASSWORD, USERNAME, login_site
from tests.support.runs.worker_rows import error_of


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a site with a login."""
    with login_site(tmp_path_factory.mktemp("site")) as address:
        yield address


def log_in(site: str, **inputs: Any) -> SubmittedRun:
    return submit_run(
        principal=local_principal(),
        template_id="login_keep_session",
        options={"mode": "async"},
        inputs={
            "startUrl": f"{site}/login",
            "fields": SELECTORS,
            "successIndicator": WELCOME,
            "credentials": {"username": USERNAME, "password": PASSWORD},
            **inputs,
        },
    )


def submit_read(session_id: str, url: str) -> str:
    return submit_run(
        principal=local_principal(),
        template_id="batch_extract_pages",
        session_id=session_id,
        inputs={"urls": [url]},
        options={"mode": "async"},
    ).run_id


def title_of(run: Run) -> str:
    return str(run.result["items"][0]["title"]) if run.result else str(run.error)


def check_no_credentials(installation: FaultInstallation) -> None:
    """Search rows, files and process output for credentials."""
    files = b"\n".join(
        path.read_bytes() for path in Path(installation.home).rglob("*") if path.is_file()
    )
    sources: dict[str, str | bytes] = {"row": every_row(), "file": files}
    assert find_secret(PASSWORD, sources) == []
    assert find_secret(USERNAME, sources) == []


def test_another_worker_restores_the_session_of_a_killed_worker(
    installation: FaultInstallation, site: str
) -> None:
    installation.start("scheduler")
    (first,) = installation.workers(1)
    login = log_in(site)
    assert installation.wait_for_end(login.run_id).status == "succeeded"
    first.kill()
    installation.workers(1)
    run = installation.wait_for_end(submit_read(login.run.session_id, f"{site}/members"))
    assert title_of(run) == "Members"
    assert "restored from its saved state" in run.warnings[0]
    again = installation.wait_for_end(submit_read(login.run.session_id, f"{site}/members"))
    assert (title_of(again), again.warnings) == ("Members", [])
    check_no_credentials(installation)
    installation.check_invariants()


@pytest.mark.slow
def test_the_worker_that_holds_a_session_gets_its_runs(
    installation: FaultInstallation, site: str
) -> None:
    installation.start("scheduler")
    installation.workers(2)
    login = log_in(site)
    installation.wait_for_end(login.run_id)
    holder = BrowserSession.objects.get().worker_id
    for _ in range(3):
        run = installation.wait_for_end(submit_read(login.run.session_id, f"{site}/members"))
        assert (title_of(run), run.warnings) == ("Members", [])
        assert RunStep.objects.get(run=run).owner == holder
    close_session(principal=local_principal(), session_id=login.run.session_id)
    installation.check_invariants()


@pytest.mark.slow
def test_a_worker_that_receives_sigterm_releases_its_session(
    installation: FaultInstallation, site: str
) -> None:
    installation.start("scheduler")
    (first,) = installation.workers(1)
    login = log_in(site)
    installation.wait_for_end(login.run_id)
    installation.workers(1)
    slow = submit_read(login.run.session_id, f"{site}/members?slow=5")
    installation.wait_until(lambda: Run.objects.get(id=slow).status == "running")
    first.popen.terminate()
    run = installation.wait_for_end(slow)
    assert title_of(run) == "Members"
    assert "restored from its saved state" in run.warnings[0]
    installation.check_invariants()


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_worker_killed_while_it_fills_in_a_form_leaves_no_credentials(
    installation: FaultInstallation, site: str, step: int
) -> None:
    installation.start("scheduler")
    installation.workers(1)
    waiting = {
        "mode": "selector",
        "usernameSelector": "#u, #never" if step == 2 else "#never",
        "passwordSelector": "#never",
    }
    login = log_in(site, fields=waiting)
    at_step = RunStep.objects.filter(run_id=login.run_id, index=step, status="started")
    installation.wait_until(at_step.exists)
    check_no_credentials(installation)
    installation.processes[-1].kill()
    installation.workers(1)
    run = installation.wait_for_end(login.run_id)
    assert error_of(run)["errorCode"] == "TPL_LOGIN_FIELD_NOT_FOUND"
    assert run.times_lost == 1
    assert not RunSecret.objects.exists()
    check_no_credentials(installation)
    installation.check_invariants()


@pytest.mark.slow
def test_a_login_succeeds_after_its_worker_is_killed_before_it_sends_the_form(
    installation: FaultInstallation, site: str
) -> None:
    installation.start("scheduler")
    installation.workers(2)
    installation.arm_failpoint("step_over")
    login = log_in(site)
    run = installation.wait_for_end(login.run_id)
    assert installation.failpoint_was_hit("step_over")
    assert (run.status, run.times_lost) == ("succeeded", 1), run.error
    assert not RunSecret.objects.exists()
    check_no_credentials(installation)
    installation.check_invariants()
