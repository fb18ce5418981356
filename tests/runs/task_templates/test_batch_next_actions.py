"""The next actions that a batch suggests, and its error if no page could be read."""

from __future__ import annotations

from typing import Any

from runs.task_templates.base import StepView
from runs.task_templates.builtin.batch_extract_pages import RESUBMIT_MAX_URLS, BatchExtractPages

TIMEOUT = {"errorCode": "NAVIGATION_TIMEOUT", "message": "late", "retryable": True}
PERMANENT_FAILURE = {
    "errorCode": "INVALID_PARAMETER",
    "message": "no such host",
    "retryable": False,
}


def step(index: int, error: dict[str, Any] | None = None, *, succeeded: bool = False) -> StepView:
    url = f"https://pages.example/{index}"
    return StepView(index, url, {"url": url}, succeeded, {} if succeeded else None, error)


def suggested_actions(*steps: StepView) -> list[dict[str, Any]]:
    urls = [view.input["url"] for view in steps]
    inputs = {"urls": urls, "concurrency": 2}
    return [dict(action) for action in BatchExtractPages().conclude(inputs, steps).next_actions]


def test_only_pages_with_retryable_failures_are_suggested_for_a_retry() -> None:
    [action] = suggested_actions(
        step(0, succeeded=True), step(1, TIMEOUT), step(2, PERMANENT_FAILURE), step(3)
    )
    urls = ["https://pages.example/1", "https://pages.example/3"]
    assert action["args"]["inputs"] == {"urls": urls, "concurrency": 2}


def test_nothing_is_suggested_when_all_pages_were_read() -> None:
    assert suggested_actions(step(0, succeeded=True)) == []


def test_pages_with_permanent_failures_are_not_suggested_again() -> None:
    [action] = suggested_actions(step(0, PERMANENT_FAILURE))
    assert action["tool"] == "list_task_templates"


def test_a_retry_of_too_many_pages_is_not_suggested() -> None:
    timed_out = [step(index, TIMEOUT) for index in range(RESUBMIT_MAX_URLS + 1)]
    assert suggested_actions(step(99, succeeded=True), *timed_out) == []


def test_the_reason_mentions_pages_that_were_read_only_if_there_are_any() -> None:
    [some] = suggested_actions(step(0, succeeded=True), step(1, TIMEOUT))
    [none] = suggested_actions(step(0, TIMEOUT), step(1))
    assert some["reason"] == "Read the 1 missing pages again; the others stay in this run's result."
    assert none["reason"] == "Read the 2 missing pages again."


def test_a_batch_has_no_side_effects_so_no_check_of_them_is_suggested() -> None:
    failed = {"errorCode": "NAVIGATION_FAILED", "message": "gone", "retryable": False}
    failed["details"] = {"url": "https://pages.example/0"}
    assert suggested_actions(step(0, failed)) == []


NOT_FOUND = {
    "errorCode": "STEP_EXECUTION_FAILED",
    "message": "HTTP status 404",
    "retryable": False,
    "recovery": "Correct the address.",
}


def error_of_batch(*steps: StepView) -> dict[str, Any]:
    inputs = {"urls": [view.input["url"] for view in steps]}
    error = BatchExtractPages().conclude(inputs, steps).error
    assert error is not None
    return dict(error)


def test_a_batch_of_which_one_page_is_retryable_says_which() -> None:
    timed_out = {**TIMEOUT, "recovery": "Try again later."}
    error = error_of_batch(step(0, NOT_FOUND), step(1, timed_out), step(2, NOT_FOUND))
    assert (error["retryable"], error["step"]["step"]) == (True, 1)
    assert error["details"]["retryableItems"] == [1]
    assert error["recovery"].startswith("Read again only the 1 of 3 pages")
    recoveries = [item["error"].get("recovery") for item in error["details"]["items"]]
    assert recoveries == ["Correct the address.", "Try again later.", None]


def test_a_batch_of_which_no_page_is_retryable_is_not_retryable() -> None:
    other = {**PERMANENT_FAILURE, "recovery": "Correct the host name."}
    error = error_of_batch(step(0, NOT_FOUND), step(1, other))
    assert (error["retryable"], error["details"]["retryableItems"]) == (False, [])
    assert "does not help" in error["recovery"]
    same = error_of_batch(step(0, NOT_FOUND), step(1, NOT_FOUND))
    assert (same["retryable"], same["recovery"]) == (False, "Correct the address.")
    assert same["errorCode"] == "STEP_EXECUTION_FAILED"
    assert same["message"] == "None of the 2 pages could be read: HTTP status 404"


def test_a_batch_with_a_retryable_page_after_one_that_is_not_is_retryable() -> None:
    late = {**NOT_FOUND, "retryable": True, "recovery": "Try again."}
    error = error_of_batch(step(0, NOT_FOUND), step(1, late))
    assert (error["errorCode"], error["retryable"]) == ("STEP_EXECUTION_FAILED", True)
