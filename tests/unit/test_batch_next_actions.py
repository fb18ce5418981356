"""The next actions that a batch suggests."""

from __future__ import annotations

from typing import Any

from runs.task_templates.base import StepView
from runs.task_templates.builtin.batch_extract_pages import RESUBMIT_MAX_URLS, BatchExtractPages

LATE = {"errorCode": "NAVIGATION_TIMEOUT", "message": "late", "retryable": True}
WRONG = {"errorCode": "INVALID_PARAMETER", "message": "no such host", "retryable": False}


def step(index: int, error: dict[str, Any] | None = None, *, succeeded: bool = False) -> StepView:
    url = f"https://pages.example/{index}"
    return StepView(index, url, {"url": url}, succeeded, {} if succeeded else None, error)


def offered(*steps: StepView) -> list[dict[str, Any]]:
    urls = [one.input["url"] for one in steps]
    inputs = {"urls": urls, "concurrency": 2}
    return [dict(action) for action in BatchExtractPages().conclude(inputs, steps).next_actions]


def test_only_pages_with_retryable_failures_are_suggested_for_a_retry() -> None:
    [action] = offered(step(0, succeeded=True), step(1, LATE), step(2, WRONG), step(3))
    urls = ["https://pages.example/1", "https://pages.example/3"]
    assert action["args"]["inputs"] == {"urls": urls, "concurrency": 2}


def test_nothing_is_suggested_when_all_pages_were_read() -> None:
    assert offered(step(0, succeeded=True)) == []


def test_pages_with_permanent_failures_are_not_suggested_again() -> None:
    [action] = offered(step(0, WRONG))
    assert action["tool"] == "list_task_templates"


def test_a_retry_of_too_many_pages_is_not_suggested() -> None:
    many = [step(index, LATE) for index in range(RESUBMIT_MAX_URLS + 1)]
    assert offered(step(99, succeeded=True), *many) == []


def test_the_reason_mentions_pages_that_were_read_only_if_there_are_any() -> None:
    [some] = offered(step(0, succeeded=True), step(1, LATE))
    [none] = offered(step(0, LATE), step(1))
    assert some["reason"] == "Read the 1 missing pages again; the others stay in this run's result."
    assert none["reason"] == "Read the 2 missing pages again."


def test_a_batch_has_no_side_effects_so_no_check_of_them_is_suggested() -> None:
    gone = {"errorCode": "NAVIGATION_FAILED", "message": "gone", "retryable": False}
    gone["details"] = {"url": "https://pages.example/0"}
    assert offered(step(0, gone)) == []
