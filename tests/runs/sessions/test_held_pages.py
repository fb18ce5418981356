"""The held page of a run that waits for a person: held, used again, closed, or lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from django.db.models import F
from django.test import override_settings

from decisions.authorization.confirmations import refuse
from decisions.authorization.policy_rules import RuleFields, create_rule
from decisions.identity.principals import Principal
from decisions.models import Decision
from runners.invocation.event_loop import get_loop
from runs.models import Run
from runs.queries.runs import get_run
from runs.sessions import held_pages
from runs.sessions.services import create_session
from runs.submission.cancel import cancel_run
from runs.submission.submit import submit_run
from runs.worker.worker import WorkerProcess
from tests.support.browser.template_sites import Site, by_text
from tests.support.decisions.confirmations import answer_confirmation, reload_run

TIMEOUT_S = 30.0


@pytest.fixture
def waiting_run(
    submit_template: Callable[..., str], worker: WorkerProcess, site: Site, close_browser: None
) -> Iterator[Run]:
    """Create a run that has filled its form and waits for confirmation before it submits."""
    create_rule(RuleFields("confirm", tool="submit_form", reason="test"), actor="t")
    field = {"name": "name", "value": "Ada", "locator": by_text("your name")}
    run_id = submit_template(
        "submit_and_verify",
        startUrl=site.url("/contact"),
        fields=[field],
        successIndicator={"type": "textIncludes", "value": "Thank you"},
    )
    worker.work()
    yield Run.objects.get(id=run_id)
    Run.objects.filter(id=run_id).update(epoch=99)
    held_pages.close_unneeded_pages("w1")


@pytest.mark.slow
def test_the_form_is_submitted_once_from_the_held_page(
    waiting_run: Run, worker: WorkerProcess, site: Site
) -> None:
    assert (waiting_run.status, waiting_run.ready, waiting_run.pinned_worker) == (
        "running",
        False,
        "w1",
    )
    assert site.server.forms == []
    answer_confirmation(waiting_run)
    worker.work()
    run = reload_run(waiting_run)
    assert run.status == "succeeded", run.error
    assert [sent["name"] for _, sent in site.server.forms] == ["Ada"]
    assert not held_pages._held


@pytest.mark.slow
def test_a_page_that_was_lost_meanwhile_ends_the_run_without_a_submit(
    waiting_run: Run, worker: WorkerProcess, site: Site, principal: Principal
) -> None:
    worker.close()
    answer_confirmation(waiting_run)
    page = held_pages.take_held_page(waiting_run.id)
    assert page is not None
    get_loop().submit(page.close()).result(20)
    with closing(WorkerProcess("w2")) as other:
        other.work()
    error = get_run(principal=principal, run_id=waiting_run.id)["error"]
    assert error["errorCode"] == "STEP_EXECUTION_FAILED"
    assert error["details"]["causeCode"] == "PAGE_CRASHED"
    assert site.server.forms == []


@pytest.mark.slow
def test_a_rejected_form_is_not_submitted_and_its_page_is_closed(
    waiting_run: Run, worker: WorkerProcess, site: Site
) -> None:
    answer_confirmation(waiting_run, refuse)
    worker.work()
    assert reload_run(waiting_run).status == "failed"
    assert site.server.forms == []
    assert not held_pages._held


@pytest.mark.slow
def test_a_rejection_is_reported_as_one_also_where_the_page_was_lost(
    waiting_run: Run, worker: WorkerProcess, principal: Principal
) -> None:
    page = held_pages.take_held_page(waiting_run.id)
    assert page is not None
    get_loop().submit(page.close()).result(20)
    answer_confirmation(waiting_run, refuse)
    worker.work()
    error = get_run(principal=principal, run_id=waiting_run.id)["error"]
    assert error["details"]["causeCode"] == "POLICY_DENIED", error


@pytest.mark.slow
def test_a_held_page_stays_with_its_worker_between_claim_and_first_step(waiting_run: Run) -> None:
    run = Run.objects.filter(id=waiting_run.id)
    run.update(epoch=F("epoch") + 1, lease_owner="w1")
    held_pages.close_unneeded_pages("w1")
    assert held_pages._held
    run.update(lease_owner="w2")
    held_pages.close_unneeded_pages("w1")
    assert not held_pages._held
    run.update(lease_owner=None)


def test_a_worker_at_its_limit_closes_the_page_of_a_waiting_run(
    waiting_run: Run,
    submit_template: Callable[..., str],
    worker: WorkerProcess,
    site: Site,
) -> None:
    field = {"name": "name", "value": "Eve", "locator": by_text("your name")}
    run_id = submit_template("submit_and_verify", startUrl=site.url("/contact"), fields=[field])
    with override_settings(MAX_WAITING_PAGES=1):
        worker.work()
    assert (Run.objects.get(id=run_id).pinned_worker, held_pages.count_held_pages()) == (None, 1)
    assert reload_run(waiting_run).pinned_worker == "w1"


@pytest.mark.slow
def test_the_page_of_a_canceled_run_is_closed(waiting_run: Run, principal: Principal) -> None:
    assert held_pages._held
    cancel_run(principal=principal, run_id=waiting_run.id)
    until = time.monotonic() + TIMEOUT_S
    while held_pages._held and time.monotonic() < until:
        time.sleep(0.1)
    assert not held_pages._held


@pytest.mark.slow
def test_a_named_session_keeps_its_page_too(
    worker: WorkerProcess,
    principal: Principal,
    site: Site,
    close_browser: None,
) -> None:
    create_rule(RuleFields("confirm", tool="submit_form", reason="test"), actor="t")
    session = create_session(principal=principal, name="kept")["sessionId"]
    field = {"name": "name", "value": "Ada", "locator": by_text("your name")}
    inputs = {"startUrl": site.url("/contact"), "fields": [field]}
    submitted = submit_run(
        principal=principal,
        template_id="submit_and_verify",
        inputs=inputs,
        session_id=session,
        options={"mode": "async"},
    )
    worker.work()
    run = Run.objects.get(id=submitted.run_id)
    assert Decision.objects.get().tool == "submit_form"
    answer_confirmation(run)
    worker.work()
    assert reload_run(run).status == "succeeded", reload_run(run).error
    assert len(site.server.forms) == 1
