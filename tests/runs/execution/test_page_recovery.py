"""The page that a run's steps share, when its worker crashes: which steps are repeated, and which
never are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runs.models import Run, RunEvent, RunStep
from runs.worker.worker import WorkerProcess
from tests.support.browser.template_sites import Site, by_selector, by_text
from tests.support.runs.worker_rows import error_of, fresh

SubmitTemplate = Callable[..., str]
ContinueRun = Callable[..., Run]


@pytest.fixture
def continue_run(worker: WorkerProcess, close_browser: None) -> ContinueRun:
    """Continue a run after its worker crashed: its steps so far, with their outputs."""

    def work(run_id: str, *recorded: tuple[str, dict[str, Any] | None]) -> Run:
        for index, (status, output) in enumerate(recorded):
            step = RunStep.objects.filter(run_id=run_id, index=index)
            step.update(status=status, output=output, attempts=1)
        done = sum(status == "succeeded" for status, _ in recorded)
        Run.objects.filter(id=run_id).update(epoch=1, done_steps=done)
        worker.work()
        return fresh(run_id)

    return work


@pytest.fixture
def form(submit_template: SubmitTemplate, site: Site) -> str:
    """Create a run that fills one field and submits."""
    field = {"name": "name", "value": "Ada", "locator": by_text("your name")}
    return submit_template(
        "submit_and_verify",
        startUrl=site.url("/contact"),
        fields=[field],
        successIndicator={"type": "textIncludes", "value": "Thank you"},
    )


DONE: tuple[str, dict[str, Any]] = ("succeeded", {"warnings": []})


@pytest.mark.slow
def test_steps_before_a_submit_are_repeated_to_restore_the_page(
    form: str, continue_run: ContinueRun, site: Site
) -> None:
    run = continue_run(form, DONE, DONE)
    assert run.status == "succeeded", run.error
    assert [sent["name"] for _, sent in site.server.forms] == ["Ada"]
    assert (run.done_steps, run.total_steps) == (4, 4)
    progress = RunEvent.objects.get(run=run, type="step.progress")
    assert progress.data["restoring"] == 2


@pytest.mark.slow
def test_a_flagged_value_is_filled_in_again_for_the_submit(
    submit_template: SubmitTemplate, continue_run: ContinueRun, site: Site
) -> None:
    name = {"name": "name", "value": "Ada", "locator": by_text("your name"), "secret": True}
    run_id = submit_template("submit_and_verify", startUrl=site.url("/contact"), fields=[name])
    run = continue_run(run_id, DONE, DONE)
    assert run.status == "succeeded", run.error
    assert [sent["name"] for _, sent in site.server.forms] == ["Ada"]


def test_a_finished_submit_is_not_repeated_to_verify_it(
    form: str, continue_run: ContinueRun, site: Site
) -> None:
    run = continue_run(form, DONE, DONE, DONE)
    error = error_of(run)
    assert (run.status, error["errorCode"]) == ("failed", "STEP_EXECUTION_FAILED")
    details = error["details"]
    assert (details["causeCode"], details["effect"], details["submitted"]) == (
        "PAGE_CRASHED",
        "done",
        "yes",
    )
    assert "submit the form" in error["message"]
    assert site.server.forms == []
    assert run.next_actions[0]["args"]["templateId"] == "batch_extract_pages"


def test_a_submit_in_flight_is_not_repeated(
    form: str, continue_run: ContinueRun, site: Site
) -> None:
    run = continue_run(form, DONE, DONE, ("started", None))
    error = error_of(run)
    assert (error["errorCode"], error["details"]["effect"]) == ("STEP_EXECUTION_FAILED", "unknown")
    assert error["details"]["submitted"] == "unknown"
    assert (site.server.hits["/contact"], site.server.forms) == (0, [])


@pytest.mark.slow
def test_a_page_that_cannot_be_restored_names_the_step(
    form: str, continue_run: ContinueRun, site: Site
) -> None:
    site.server.add("/contact", "<title>Closed</title><h1>The form is closed</h1>")
    error = error_of(continue_run(form, DONE, DONE))
    assert error["errorCode"] == "ELEMENT_NOT_FOUND"
    assert error["details"]["restoring"] == "fill name"
    assert error["step"]["name"] == "submit the form"
    assert error["details"]["submitted"] == "no"


@pytest.mark.slow
def test_a_list_is_paged_through_again_and_keeps_the_read_pages(
    submit_template: SubmitTemplate, continue_run: ContinueRun, site: Site
) -> None:
    run_id = submit_template(
        "paginated_extract",
        startUrl=site.url("/list"),
        pagination={"next": by_selector("#next"), "maxPages": 3},
    )
    read: dict[str, Any] = {
        "url": "http://before/",
        "title": "as it was",
        "warnings": [],
        "stop": None,
    }
    run = continue_run(
        run_id,
        ("succeeded", {**read, "fingerprint": "1"}),
        ("succeeded", {**read, "fingerprint": "2"}),
    )
    assert run.status == "succeeded", run.error
    titles = [page["title"] for page in run.result["pages"]]
    assert titles == ["as it was", "as it was", "List 3"]
    assert run.result["stoppedReason"] == "max_pages"
