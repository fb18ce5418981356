"""Runs of an older version get their subject, their terms and the codes of their error."""

from __future__ import annotations

from collections.abc import Callable

from runs.models import Run, RunTerms
from runs.queries.run_search import find_runs
from runs.scheduler.subjects import fill_in_subjects


def test_a_run_without_a_subject_gets_one_and_is_found(make_run: Callable[..., Run]) -> None:
    details = {"causeCode": "PAGE_GONE", "url": "https://a.de/x"}
    error = {"errorCode": "STEP_EXECUTION_FAILED", "details": details}
    old = make_run(
        subject=None,
        template_id="batch_extract_pages",
        inputs={"urls": ["https://a.de/x"]},
        status="failed",
        error=error,
        error_code="",
        error_cause="",
        error_site="",
    )
    RunTerms.objects.filter(run=old).delete()
    assert (fill_in_subjects(), fill_in_subjects()) == (1, 0)
    old.refresh_from_db()
    assert (old.subject, old.error_code) == ("a.de/x", "STEP_EXECUTION_FAILED")
    assert old.error_site == "a.de"
    assert list(find_runs(Run.objects.all(), "a.de page_gone")) == [old]


def test_a_run_whose_inputs_or_template_are_unknown_gets_the_name_of_its_template(
    make_run: Callable[..., Run],
) -> None:
    make_run(id="run_1", subject=None, template_id="batch_extract_pages", inputs={})
    make_run(id="run_2", subject=None, template_id="removed")
    assert fill_in_subjects() == 2
    assert Run.objects.get(id="run_1").subject == "Read a batch of pages"
    assert Run.objects.get(id="run_2").subject == "removed"
